// A connection between the agents of two hosts, over which copies of commits travel.
#ifndef AGENT_COPIES_CHANNEL_H_
#define AGENT_COPIES_CHANNEL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "base/net/wire.h"

namespace hvd::agent::copies {

// What two agents of one job share. The certificates say that both belong to hosts of one
// authority, the token that they belong to one job.
struct Trust {
  std::shared_ptr<const net::TlsContext> tls;
  std::string token;
};

// The answer to a keeper's request, which is the number of the newest commit that it has; the
// contents follow.
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

// One end: blocks, under TLS whatever the job's data does, since a commit holds what is unpickled.
// Belongs to one thread.
// Errors of all calls:
//   - DeadlineExceeded: the other end was silent for kPatience.
//   - Unavailable: the connection has ended.
//   - the cancellation's status.
class Channel {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // `cancellation` is borrowed.
  Channel(Fd connection, const Trust& trust, net::TlsEnd end, const Cancellation& cancellation);

  // Both ends show what they are.
  // Errors:
  //   - PermissionDenied: the other end is a stranger.
  absl::Status Open(absl::Duration patience = kPatience);

  absl::Status Send(absl::string_view bytes);
  absl::Status Receive(char* buffer, size_t size);

  // Waits until there is something to receive, however long that takes.
  absl::Status AwaitBytes();

  // Waits. OK if the other end has not spoken, and has not hung up.
  absl::Status Pause(absl::Duration time);

 private:
  absl::Status Await(short events, absl::Duration patience);

  const Trust& trust_;
  const net::TlsEnd end_;
  const Cancellation& cancellation_;
  net::Wire wire_;
};

// Lets this thread have the CPU only as far as training leaves it.
void RunInBackground();

}  // namespace hvd::agent::copies

#endif  // AGENT_COPIES_CHANNEL_H_
