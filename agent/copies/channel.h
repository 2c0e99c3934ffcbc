// A TLS connection between the agents of two hosts, which transfers copies of commits.
#ifndef AGENT_COPIES_CHANNEL_H_
#define AGENT_COPIES_CHANNEL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/net/peer/handshake.h"
#include "base/net/wire.h"

namespace hvd::agent::copies {

// The credentials that two agents of one job share. The certificates prove that both agents run on
// hosts of one authority; the token proves that they belong to the same job.
struct Trust {
  std::shared_ptr<const net::TlsContext> tls;
  std::string token;
};

// The header of an answer with a commit; the commit's contents follow. A keeper's request is the
// number of the newest commit that it has.
struct CopyHead {
  static constexpr size_t kBytes = 20;

  uint64_t number = 0;
  uint64_t size = 0;
  uint32_t checksum = 0;  // CRC-32C of the contents

  std::string Encoded() const;
  static CopyHead Decode(absl::string_view bytes);
};

std::string EncodeNumber(uint64_t number);
uint64_t DecodeNumber(absl::string_view bytes);

// A handshake that proves to each end that the other one knows the token, the keeper first: the
// source reveals nothing to a peer that has not proved it. The connection uses TLS even if the
// job's data is not encrypted: a commit is unpickled, so a forged one could run code. `trust` is
// borrowed. `binding`: of the TLS connection.
std::unique_ptr<net::peer::Handshake> MakeTokenHandshake(const Trust& trust, net::TlsEnd end,
                                                         std::string binding);

// One end of an authenticated connection, with blocking calls. Belongs to one thread.
// Errors of all calls:
//   - DeadlineExceeded: the peer sent nothing for kPatience.
//   - Unavailable: the connection has ended.
//   - the cancellation's status.
class Channel {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `cancellation` is borrowed.
  Channel(net::Wire wire, const Cancellation& cancellation)
      : cancellation_(cancellation), wire_(std::move(wire)) {}

  absl::Status Send(absl::string_view bytes);
  absl::Status Receive(char* buffer, size_t size);

  // Waits until there are bytes to receive; without a time limit by default.
  absl::Status AwaitBytes(absl::Duration patience = absl::InfiniteDuration());

  // Sleeps for `time`. OK if the peer has neither sent anything nor closed the connection by then.
  absl::Status Pause(absl::Duration time);

 private:
  absl::Status Await(short events, absl::Duration patience);

  const Cancellation& cancellation_;
  net::Wire wire_;
};

// Lowers the calling thread's scheduling priority below that of training.
void RunInBackground();

}  // namespace hvd::agent::copies

#endif  // AGENT_COPIES_CHANNEL_H_
