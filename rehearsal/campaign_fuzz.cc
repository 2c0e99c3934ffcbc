// Fuzz target: files that somebody gives to --inject. What is accepted can be carried out: each
// fault has one time, and the parameters of its kind.
#include <cstdint>

#include "rehearsal/campaign.h"
#include "tests/support/fuzzing.h"

namespace hvd::rehearsal {
namespace {

void Check(const Fault& fault) {
  const KindFacts& facts = FactsOf(fault.kind);
  Require(fault.step.has_value() != fault.time.has_value(), "a fault has one time");
  Require(!(fault.rank.has_value() && !fault.host.empty()), "a fault has one target");
  Require(!facts.is_about_host || !fault.rank.has_value(), "a host's fault is of no rank");
  Require(!facts.lasts || fault.lasts > absl::ZeroDuration(), "what lasts has a time");
  Require(!facts.delays || fault.delay > absl::ZeroDuration(), "what delays has a delay");
  Require(fault.lasts < absl::Hours(25) && fault.grace < absl::Hours(25),
          "times fit 32 bits of ms");
}

}  // namespace
}  // namespace hvd::rehearsal

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto campaign = hvd::rehearsal::ParseCampaign(hvd::AsText(data, size), "file");
  if (!campaign.ok()) return 0;
  hvd::Require(!campaign->faults.empty(), "a campaign has a fault");
  for (const hvd::rehearsal::Fault& fault : campaign->faults) hvd::rehearsal::Check(fault);
  (void)hvd::rehearsal::CheckCampaign(*campaign,
                                      {{"a", "b"}, 4, hvd::settings::OnCorruption::kWarn});
  return 0;
}
