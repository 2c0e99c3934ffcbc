// The protocol of one rank: its transfers, and the packets to and from each peer.
#ifndef COLLECTIVES_MESSAGES_ENDPOINT_H_
#define COLLECTIVES_MESSAGES_ENDPOINT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/messages/eager_credit.h"
#include "collectives/messages/flow.h"
#include "collectives/messages/matcher.h"
#include "collectives/messages/packet.h"
#include "collectives/messages/transfer.h"

namespace hvd::collectives::messages {

// Its owner connects it, and calls it when a stream may have bytes or room. Pure: it moves bytes
// only through its flows, and nothing blocks. Not thread-safe.
class Endpoint {
 public:
  Endpoint(int rank, int size);

  int size() const { return static_cast<int>(peers_.size()); }

  // Connect it with a peer; each at most once. `memory` may be nullptr. Borrowed; they may be
  // destroyed once the peer has ended.
  void SetOutFlow(int peer, OutFlow* outflow) {
    peers_[peer].outflow = outflow;
    CountWriter(peers_[peer]);
  }
  void SetInFlow(int peer, InFlow* inflow) { peers_[peer].inflow = inflow; }
  void SetMemory(int peer, PeerMemory* memory) { peers_[peer].memory = memory; }
  bool has_outflow(int peer) const { return peers_[peer].outflow != nullptr; }
  bool has_inflow(int peer) const { return peers_[peer].inflow != nullptr; }

  // Start a transfer, and write what there is room for. See Messenger.
  TransferPtr Send(int peer, const Message& message, const void* data, size_t bytes,
                   std::function<void()> then);
  TransferPtr Receive(int source_or_any, const Message& message, void* data, size_t bytes,
                      std::function<void()> then);

  // What a Read has found.
  struct Seen {
    bool moved = false;
    bool more = false;  // it has stopped although there may be more
  };
  // Reads packets of a peer that has an inflow.
  // Errors:
  //   - DataLoss: no endpoint sends such packets.
  absl::StatusOr<Seen> Read(int peer);
  // Whether the peer has sent its last packet, and which: kGoodbye or kGaveUp.
  std::optional<PacketKind> last_packet(int peer) const { return peers_[peer].last_packet; }

  // Writes packets; returns whether anything has moved.
  bool Write(int peer);
  bool wants_to_write(int peer) const { return peers_[peer].wants_to_write(); }
  bool has_writers() const { return writers_ > 0; }
  // Takes out the peers for which there are packets, but no outflow; each is named once.
  std::vector<int> TakeUnreached() { return std::exchange(unreached_, {}); }
  bool has_unreached() const { return !unreached_.empty(); }
  // Writes a last packet, unless there is no room or the stream is within a packet.
  void SayLast(int peer, PacketKind kind);

  // A piece of a message that this rank copies from a peer's memory.
  struct Pull {
    int peer;
    PeerMemory* memory;
    uint64_t address;
    char* to;
    size_t bytes;
    bool last;
  };
  bool has_pulls() const { return !pulls_.empty(); }
  // The next piece. The caller copies it and calls EndPull, before the next call of NextPull.
  // REQUIRES: has_pulls().
  Pull NextPull();
  void EndPull(bool copied);

  // Fail all transfers, also later ones: with this peer, which sends nothing more; or all. What has
  // arrived completely before can still be received.
  void EndPeer(int peer, const absl::Status& why);
  void Break(const absl::Status& why);
  bool ended(int peer) const { return !peers_[peer].status.ok(); }
  // OK until Break, then its first reason.
  const absl::Status& status() const { return status_; }

  // Takes out the callbacks of the transfers that are done, which the caller has to call.
  std::vector<std::function<void()>> TakeCallbacks() { return std::exchange(callbacks_, {}); }
  bool has_callbacks() const { return !callbacks_.empty(); }

 private:
  struct Outgoing {
    PacketHeader header;
    absl::string_view payload;
    TransferPtr completes;  // once it is written; may be nullptr
    size_t written = 0;
  };
  // A large message that the receiver has granted.
  struct Stream {
    TransferPtr send;
    uint64_t receiver;  // its number there
  };
  struct Pulling {
    int peer;
    uint64_t id;
    uint64_t address;
    TransferPtr receive;
  };
  // The packet that is being read.
  struct Incoming {
    PacketHeader header;
    size_t header_bytes = 0;  // read
    char* to = nullptr;       // nullptr: the payload is discarded
    size_t left = 0;          // of the payload
    TransferPtr receive;
    ArrivalPtr arrival;
  };
  struct Peer {
    OutFlow* outflow = nullptr;
    InFlow* inflow = nullptr;
    PeerMemory* memory = nullptr;
    absl::Status status;
    std::optional<PacketKind> last_packet;

    std::deque<Outgoing> queue;
    std::deque<Stream> streams;
    absl::flat_hash_map<uint64_t, TransferPtr> announced;  // sends, by their number
    EagerCredit credit;
    bool is_unreached = false;  // it was named by TakeUnreached
    bool is_writer = false;     // counted in writers_

    Incoming incoming;
    absl::flat_hash_map<uint64_t, TransferPtr> granted;  // receives, by their number
    EagerDebt debt;

    bool wants_to_write() const {
      return outflow != nullptr && (!queue.empty() || !streams.empty());
    }
  };

  void SendToSelf(TransferPtr send);
  void TakeOwn(const Arrival& arrival, const TransferPtr& receive);

  void ReachSources(int source_or_any);
  void Reach(int peer);
  void Queue(int peer, const PacketHeader& header, absl::string_view payload = {},
             TransferPtr completes = nullptr);
  void QueuePiece(Peer& peer);
  // To be called after each change of what wants_to_write() depends on.
  void CountWriter(Peer& peer) {
    writers_ += static_cast<int>(peer.wants_to_write()) - static_cast<int>(peer.is_writer);
    peer.is_writer = peer.wants_to_write();
  }

  absl::Status OnHeader(int peer);
  absl::Status OnEager(int peer);
  absl::Status OnAnnounce(int peer);
  absl::Status OnGrant(int peer);
  absl::Status OnData(int peer);
  absl::Status OnAnswer(int peer);
  void OnPayload(int peer);
  size_t ReadPayload(Peer& peer);

  void Take(const ArrivalPtr& arrival, const TransferPtr& receive);
  void CopyArrived(Arrival& arrival, const TransferPtr& receive);
  void GiveOut(int peer, size_t bytes);
  void BeginLarge(int peer, uint64_t id, uint64_t address, const TransferPtr& receive);
  void Grant(int peer, uint64_t id, const TransferPtr& receive);
  void Refuse(int peer, uint64_t id, const TransferPtr& receive);

  void EndAnySource();
  void Finish(const TransferPtr& transfer, const absl::Status& status);

  const int rank_;
  std::vector<Peer> peers_;  // by rank
  int others_;               // that have not ended
  int writers_ = 0;
  Matcher matcher_;
  std::deque<Pulling> pulls_;  // the first one is `pulling_` while that is set
  bool is_pulling_ = false;
  absl::Status pull_failed_;  // of the first one, meanwhile
  std::vector<int> unreached_;
  std::vector<std::function<void()>> callbacks_;
  uint64_t next_id_ = 1;
  absl::Status status_;
  std::array<char, 16384> discarded_;
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_ENDPOINT_H_
