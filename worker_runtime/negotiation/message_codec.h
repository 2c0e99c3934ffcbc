// Encoding and decoding of the negotiation's messages; see proto/negotiation.proto.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker_runtime/negotiation/known_signatures.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

std::string Encode(const Announcement& announcement);
// Returns the encoding for rank `receiver`.
std::string Encode(const Plan& plan, int receiver);
// Whether the encoding is the same for all receivers.
bool IsAlikeForAll(const Plan& plan);

// Decodes and validates: the result's enum values exist, its tensors have sane sizes, and its ranks
// and lists fit a world of `size`.
// Errors:
//   - InvalidArgument: the bytes are not a valid announcement.
absl::StatusOr<Announcement> DecodeAnnouncement(absl::string_view bytes, int size);

// Decodes and validates like DecodeAnnouncement. Looks up known ids in `known`, so every tensor of
// the result has its signature.
// Errors:
//   - InvalidArgument: the bytes are not a valid plan, or an id is not in `known`.
absl::StatusOr<Plan> DecodePlan(absl::string_view bytes, int size, const KnownSignatures& known);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_
