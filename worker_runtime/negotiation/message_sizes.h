// How large messages may get, and how what is too much for one is cut.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

// A message that has so many bytes gets no more operations.
inline constexpr size_t kGoodMessageBytes = size_t{4} << 20;
// What one operation may take to announce: its tensors' names, shapes and splits.
inline constexpr size_t kMostOperationBytes = size_t{64} << 20;

// What they take on the wire, at most.
size_t WireBytes(const TensorSignature& signature);
size_t WireBytes(const PlannedTensor& tensor);
size_t WireBytes(const Failure& failure);

// InvalidArgument: the group can't be announced; says how large it is and may be.
absl::Status CheckSize(absl::Span<const SignaturePtr> group);

// The same in several announcements, to be sent in this order, none of them much larger than is
// good. Groups stay whole; what is not a group goes with the last.
std::vector<Announcement> Split(Announcement announcement);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MESSAGE_SIZES_H_
