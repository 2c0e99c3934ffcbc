// The protocol of the segment setup between rank 0 and the other ranks of a host:
//
//   rank r -> rank 0   Hello, with the descriptor of r's bell
//   rank 0 -> rank r   Answer, with the descriptors of the memory, all bells and all processes
//   rank r -> rank 0   Mapped
//   rank 0 -> rank r   Answer: the result, the same for all ranks
#ifndef COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_PROTOCOL_H_
#define COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_PROTOCOL_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "base/net/descriptor_passing.h"
#include "base/status_macros.h"
#include "collectives/key_exchange.h"
#include "collectives/peer_proof.h"
#include "collectives/types.h"

namespace hvd::collectives::shm::segment {

// A member's first message, with its bell.
struct Hello {
  int32_t rank;
  char proof[kProofBytes];
};
// Rank 0's answers: the first comes with the memory, all bells and, if available, all processes;
// the second has the result.
struct Answer {
  int32_t code;  // absl::StatusCode
  int32_t rank;  // the rank that an error is about
  char proof[kProofBytes];
};
// A member's second message: whether it could map the memory.
struct Mapped {
  int32_t ok;
};

// The result of the key exchange, the same on all ranks. A proof covers the transcript, so that it
// is valid for this setup alone.
struct Invitation {
  std::string socket_name;
  std::string transcript;
};
// Errors: those of KeyExchange::AllGather.
absl::StatusOr<Invitation> Invite(const GroupInfo& group, KeyExchange& keys,
                                  const std::string& socket_name, const WaitBounds& bounds);

// The proof that the rank `from` knows the group's secret.
std::string Proof(const GroupInfo& group, const Invitation& invitation, int from);
bool CheckProof(const GroupInfo& group, const Invitation& invitation, int from,
                absl::string_view proof);

Fd NewSocket();
sockaddr_un AddressOf(absl::string_view name, socklen_t* length);

// The waits of one setup, bounded by its deadline and cancellation.
class Patience {
 public:
  explicit Patience(const WaitBounds& bounds);

  // Waits until one of `fds` is ready, or until `look_again`.
  // Errors:
  //   - DeadlineExceeded: the deadline passed.
  //   - The cancellation's status: it was cancelled.
  absl::Status Await(std::vector<pollfd>& fds,
                     absl::Time look_again = absl::InfiniteFuture()) const;
  absl::Status AwaitReadable(int fd) const;

  absl::Duration timeout() const { return bounds_.timeout; }

 private:
  const WaitBounds bounds_;
  const absl::Time deadline_;
};

template <typename Message>
absl::Status Send(int socket, const Message& message, const std::vector<int>& descriptors = {}) {
  return net::SendWithDescriptors(
      socket, absl::string_view(reinterpret_cast<const char*>(&message), sizeof(message)),
      descriptors);
}

// Receives one message, which must have arrived as a whole.
// Errors:
//   - Unavailable: the peer has closed the connection, or sent something else.
template <typename Message>
absl::StatusOr<Message> Receive(int socket, std::vector<Fd>& descriptors) {
  Message message = {};
  ASSIGN_OR_RETURN(const size_t got,
                   net::ReceiveWithDescriptors(socket, reinterpret_cast<char*>(&message),
                                               sizeof(message), descriptors));
  if (got == sizeof(message)) return message;
  return absl::UnavailableError(got == 0 ? "it has closed its connection"
                                         : "it has sent an invalid message");
}

absl::Status GoneError(int rank, const absl::Status& why);
// Converts an Answer to the status that it stands for.
absl::Status ToStatus(const Answer& answer);

}  // namespace hvd::collectives::shm::segment

#endif  // COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_PROTOCOL_H_
