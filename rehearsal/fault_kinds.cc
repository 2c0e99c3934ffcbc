#include "rehearsal/fault_kinds.h"

#include <array>
#include <utility>

namespace hvd::rehearsal {
namespace {

constexpr absl::string_view kNextWorld = "a next world from the newest commit";
constexpr absl::string_view kGoesOn = "training goes on in the same world";

const std::vector<KindFacts>& AllKinds() {
  static const auto& kinds = *new std::vector<KindFacts>{
      {FaultKind::kKill, "kill", false, false, false, false, Expectation::kNextWorld,
       absl::ZeroDuration(), kNextWorld},
      {FaultKind::kStop, "stop", false, false, false, false, Expectation::kNextWorld, kStopLimit,
       kNextWorld},
      {FaultKind::kException, "exception", false, false, false, false, Expectation::kNextWorld,
       absl::ZeroDuration(), kNextWorld},
      {FaultKind::kLostHost, "lost_host", true, false, false, true, Expectation::kNextWorld,
       absl::ZeroDuration(), kNextWorld},
      {FaultKind::kPreemption, "preemption", true, false, false, true, Expectation::kLeavesWell,
       absl::ZeroDuration(), "its workers leave at a commit, no step is lost"},
      {FaultKind::kCutLink, "cut_link", false, false, false, true, Expectation::kNextWorld,
       absl::ZeroDuration(), kNextWorld},
      {FaultKind::kSlowLink, "slow_link", false, true, true, true, Expectation::kGoesOn,
       absl::ZeroDuration(), kGoesOn},
      {FaultKind::kSlowRank, "slow_rank", false, true, true, false, Expectation::kGoesOn,
       absl::ZeroDuration(), kGoesOn},
      {FaultKind::kWrongGradientValue, "wrong_gradient_value", false, false, false, false,
       Expectation::kGoesOn, absl::ZeroDuration(), kGoesOn},
      {FaultKind::kFullDisk, "full_disk", false, true, false, false, Expectation::kDiskRecovers,
       absl::ZeroDuration(), "training goes on; a checkpoint when there is room again"},
  };
  return kinds;
}

constexpr std::array<std::pair<absl::string_view, absl::string_view>, 2> kRefused = {{
    {"lost_daemon",
     "the daemon of this job is a part of horovodrun and ends with it; rehearse it with "
     "horovod-rendezvousd --state-dir: kill that, and start it again"},
    {"clock_step",
     "no deadline of Horovod reads a clock that can be set, so there is nothing to rehearse within "
     "it; set the clock of a test host to try your script"},
}};

}  // namespace

const KindFacts& FactsOf(FaultKind kind) {
  for (const KindFacts& facts : AllKinds()) {
    if (facts.kind == kind) return facts;
  }
  return AllKinds().front();  // each kind is there
}

const KindFacts* FindKind(absl::string_view name) {
  for (const KindFacts& facts : AllKinds()) {
    if (facts.name == name) return &facts;
  }
  return nullptr;
}

std::vector<absl::string_view> KindNames() {
  std::vector<absl::string_view> names;
  for (const KindFacts& facts : AllKinds()) names.push_back(facts.name);
  return names;
}

absl::string_view WhyRefused(absl::string_view name) {
  for (const auto& [refused, why] : kRefused) {
    if (refused == name) return why;
  }
  return "";
}

}  // namespace hvd::rehearsal
