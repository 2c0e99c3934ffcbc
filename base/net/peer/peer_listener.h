// A listener for connections of peers, on an event loop: its owner gets those that are
// authenticated.
#ifndef BASE_NET_PEER_PEER_LISTENER_H_
#define BASE_NET_PEER_PEER_LISTENER_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/acceptor.h"
#include "base/net/peer/peer_opening.h"
#include "base/net/strangers.h"
#include "base/net/wire.h"

namespace hvd::net::peer {

// The bounds of connections that are not authenticated yet.
struct StrangerBounds {
  size_t most = 0;                             // at each stage of the handshake; see Strangers
  absl::Duration patience = absl::Seconds(0);  // how long one may take
};

// A connection that is not authenticated yet is a stranger. It is closed when its time is over, or
// at once after a wrong proof. Strangers decides which one goes if there are too many. While the
// process has no file descriptor left, new connections wait in the listener's backlog.
//
// Not thread-safe: belongs to its loop's thread; the loop must outlive it.
class PeerListener {
 public:
  // Receives each authenticated connection, and its peer (see Handshake), on the loop's thread.
  // Must not destroy the listener.
  using Take = std::function<void(Wire connection, const PeerId& peer)>;

  // `tls` null: no encryption.
  PeerListener(EventLoop& loop, Fd listener, std::shared_ptr<const TlsContext> tls,
               PeerOpening::MakeHandshake make_handshake, StrangerBounds bounds, Take take);
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;
  // Closes all strangers' connections.
  ~PeerListener();

  // Errors: those of EventLoop::Watch.
  absl::Status Begin();

  // The number of strangers that were closed so far. A peer that sees its connection close has been
  // counted. Any thread may call it.
  int refused() const { return refused_.load(); }

 private:
  using Id = Strangers::Id;
  struct Stranger {
    PeerOpening opening;
    EventLoop::TimerId expiry;
    bool writes = false;  // whether the loop waits until it is writable, not readable
  };

  void Admit(Fd fd);
  void Advance(Id id);
  void AwaitTurn(Id id, Stranger* stranger, bool writes);
  bool MakeRoom();
  Stranger TakeOut(Id id);
  void Refuse(Id id);

  EventLoop& loop_;
  const std::shared_ptr<const TlsContext> tls_;
  const PeerOpening::MakeHandshake make_handshake_;
  const absl::Duration patience_;
  const Take take_;
  std::atomic<int> refused_{0};
  Strangers strangers_;
  std::map<Id, Stranger> openings_;  // of strangers_
  Acceptor acceptor_;                // the last one: it calls this listener
};

}  // namespace hvd::net::peer

#endif  // BASE_NET_PEER_PEER_LISTENER_H_
