// The codec of the negotiation's messages; see proto/negotiation.proto.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker_runtime/negotiation/known_signatures.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

std::string Encode(const Announcement& announcement);
// The encoding for rank `receiver`.
std::string Encode(const Plan& plan, int receiver);
// Whether that is the same for all receivers.
bool IsAlikeForAll(const Plan& plan);

// The result is valid: kinds exist, shapes can be counted, ranks and lists fit a world of `size`.
// Errors:
//   - InvalidArgument: the bytes are no such message.
absl::StatusOr<Announcement> DecodeAnnouncement(absl::string_view bytes, int size);

// Known ids are looked up in `known`, so every tensor has its signature.
// Errors:
//   - InvalidArgument: the bytes are no such message, or an id is not known.
absl::StatusOr<Plan> DecodePlan(absl::string_view bytes, int size, const KnownSignatures& known);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_
