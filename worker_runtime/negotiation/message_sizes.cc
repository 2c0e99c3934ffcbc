#include "worker_runtime/negotiation/message_sizes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::worker_runtime::negotiation {
namespace {

// The largest sizes of a protobuf varint: of 64 bits, and of a non-negative number of 32 bits.
constexpr size_t kLongBytes = 10, kIntBytes = 5;
// An upper bound for a tensor's fields of fixed size and the tags and lengths of the others.
constexpr size_t kFixedBytes = 96;

size_t WireBytes(const AnnouncedTensor& tensor) {
  return tensor.signature == nullptr
             ? kFixedBytes
             : hvd::worker_runtime::negotiation::WireBytes(*tensor.signature);
}

}  // namespace

size_t WireBytes(const TensorSignature& signature) {
  return kFixedBytes + signature.name.size() + signature.meaning.size() +
         kLongBytes * signature.shape.size() + kIntBytes * signature.splits.size();
}

size_t WireBytes(const PlannedTensor& tensor) {
  const bool is_known = tensor.known_id != kNoSignatureId;
  // A plan with many ready tensors is divided by this bound, so an underestimate could exceed the
  // limit of a message, which ends the epoch.
  return kFixedBytes + (is_known ? 0 : WireBytes(*tensor.signature)) +
         kLongBytes * tensor.first_dims.size() +
         kIntBytes * (tensor.received_splits.size() + tensor.absent_ranks.size());
}

size_t WireBytes(const Failure& failure) {
  size_t bytes = kFixedBytes + failure.message.size();
  for (const std::string& name : failure.names) bytes += kIntBytes + name.size();
  return bytes;
}

absl::Status CheckSize(absl::Span<const SignaturePtr> group) {
  size_t bytes = 0;
  for (const SignaturePtr& signature : group) bytes += WireBytes(*signature);
  if (bytes <= kMostOperationBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an operation of ", group.size(), group.size() == 1 ? " tensor" : " tensors",
                   " takes ", bytes, " bytes to announce (names, shapes and splits); the limit is ",
                   kMostOperationBytes, ": use smaller groups or shorter names"));
}

std::vector<Announcement> Split(Announcement announcement) {
  std::vector<Announcement> parts;
  auto groups = std::exchange(announcement.groups, {});
  size_t bytes = 0;
  for (auto& group : groups) {
    // A group is never divided: the coordinator takes it as a whole. CheckSize bounds its size.
    if (bytes >= kGoodMessageBytes) {
      Announcement& part = parts.emplace_back();
      part.seen_sequence = announcement.seen_sequence;
      part.groups = std::exchange(announcement.groups, {});
      bytes = 0;
    }
    for (const AnnouncedTensor& tensor : group) bytes += WireBytes(tensor);
    announcement.groups.push_back(std::move(group));
  }
  // The last part has the rest of the announcement (the end, the names on which the rank is
  // blocked), which must not come before the tensors that it is about.
  parts.push_back(std::move(announcement));
  return parts;
}

}  // namespace hvd::worker_runtime::negotiation
