// The size limits of messages, and the splitting of larger ones.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// A message of this size gets no more operations.
inline constexpr size_t kGoodMessageBytes = size_t{4} << 20;
// The limit of one operation's announcement: its tensors' names, shapes and splits.
inline constexpr size_t kMostOperationBytes = size_t{64} << 20;

// Upper bounds of the sizes on the wire.
size_t WireBytes(const TensorSignature& signature);
size_t WireBytes(const PlannedTensor& tensor);
size_t WireBytes(const Failure& failure);

// Errors:
//   - InvalidArgument: the group can't be announced; gives its size and the limit.
absl::Status CheckSize(absl::Span<const SignaturePtr> group);

// Splits into several announcements, to be sent in this order, none of them much larger than
// kGoodMessageBytes. Groups stay whole; all other fields go with the last.
std::vector<Announcement> Split(Announcement announcement);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_
