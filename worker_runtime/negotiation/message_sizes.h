// Size limits of negotiation messages, and the splitting of larger ones.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// The target size of a message: once it is reached, no operation is added.
inline constexpr size_t kGoodMessageBytes = size_t{4} << 20;
// The largest announcement of one operation: the names, shapes and splits of its tensors.
inline constexpr size_t kMostOperationBytes = size_t{64} << 20;

// Upper bounds of the sizes on the wire.
size_t WireBytes(const TensorSignature& signature);
size_t WireBytes(const PlannedTensor& tensor);
size_t WireBytes(const Failure& failure);

// Checks that a group can be announced.
// Errors:
//   - InvalidArgument: the group is too large; the message has its size and the limit.
absl::Status CheckSize(absl::Span<const SignaturePtr> group);

// Splits an announcement into several ones, to be sent in this order, that exceed kGoodMessageBytes
// by one group at most. A group is never split. All other fields are in the last one.
std::vector<Announcement> Split(Announcement announcement);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_
