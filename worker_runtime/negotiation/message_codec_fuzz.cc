// Fuzz target: announcements and plans as another process may send them. What is accepted must
// survive another encoding.
#include <cstdint>
#include <string>

#include "tests/support/fuzzing.h"
#include "worker_runtime/negotiation/message_codec.h"

namespace hvd::worker_runtime::negotiation {
namespace {

constexpr int kRanks = 4;

void CheckAnnouncement(absl::string_view bytes) {
  const auto announcement = DecodeAnnouncement(bytes, kRanks);
  if (!announcement.ok()) return;
  const std::string encoded = Encode(*announcement);
  const auto again = DecodeAnnouncement(encoded, kRanks);
  Require(again.ok(), "what is encoded can be decoded");
  Require(Encode(*again) == encoded, "the encoding stays the same");
}

void CheckPlan(absl::string_view bytes) {
  KnownSignatures known;
  const auto plan = DecodePlan(bytes, kRanks, known);
  if (!plan.ok()) return;
  for (int receiver = 0; receiver < kRanks; ++receiver) {
    Require(DecodePlan(Encode(*plan, receiver), kRanks, known).ok(),
            "a receiver can decode its plan");
  }
  known.Apply(*plan);
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes = hvd::AsText(data, size);
  hvd::worker_runtime::negotiation::CheckAnnouncement(bytes);
  hvd::worker_runtime::negotiation::CheckPlan(bytes);
  return 0;
}
