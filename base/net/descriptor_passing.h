// Descriptor passing: messages with file descriptors over unix sockets (SCM_RIGHTS).
#ifndef BASE_NET_DESCRIPTOR_PASSING_H_
#define BASE_NET_DESCRIPTOR_PASSING_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"

namespace hvd::net {

// The kernel's limit of descriptors in one message.
inline constexpr size_t kMostPassedDescriptors = 253;

// Sends one message. Never blocks, never raises SIGPIPE. `descriptors` are borrowed.
// Errors:
//   - Unavailable: the peer is gone, or its buffer is full.
//   - InvalidArgument: too many descriptors.
absl::Status SendWithDescriptors(int socket, absl::string_view bytes,
                                 const std::vector<int>& descriptors);

// Reads once from a readable socket: up to `size` bytes, and the descriptors that were sent with
// them, which are close-on-exec. Returns the number of bytes; 0: the stream has ended.
// Errors:
//   - Unavailable: the peer is gone, or there was nothing to read.
absl::StatusOr<size_t> ReceiveWithDescriptors(int socket, char* buffer, size_t size,
                                              std::vector<Fd>& descriptors);

}  // namespace hvd::net

#endif  // BASE_NET_DESCRIPTOR_PASSING_H_
