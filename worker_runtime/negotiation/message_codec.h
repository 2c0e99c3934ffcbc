// Messages to bytes and back; see proto/negotiation.proto.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker_runtime/negotiation/known_signatures.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::negotiation {

std::string Encode(const Announcement& announcement);
// As rank `receiver` gets it.
std::string Encode(const Plan& plan, int receiver);
// Whether that is the same for all of them.
bool IsAlikeForAll(const Plan& plan);

// What comes out is within bounds: kinds exist, shapes can be counted, ranks and lists fit a world
// of `size`.
//   InvalidArgument: the bytes are no such message.
absl::StatusOr<Announcement> DecodeAnnouncement(absl::string_view bytes, int size);

// Known ids are looked up in `known`, so every tensor has its signature.   InvalidArgument: as
// above, or an id is not known.
absl::StatusOr<Plan> DecodePlan(absl::string_view bytes, int size, const KnownSignatures& known);

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MESSAGE_CODEC_H_
