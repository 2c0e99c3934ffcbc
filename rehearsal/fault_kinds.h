// The kinds of faults that a rehearsal knows: what each needs, and what it is expected to lead to.
// Pure.
#ifndef REHEARSAL_FAULT_KINDS_H_
#define REHEARSAL_FAULT_KINDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::rehearsal {

enum class FaultKind {
  kKill,
  kStop,
  kException,
  kSlowRank,
  kSlowLink,
  kCutLink,
  kWrongGradientValue,
  kFullDisk,
  kPreemption,
  kLostHost,
};

enum class Expectation {
  kNextWorld,    // a failure: the others form the next world, from the newest commit
  kGoesOn,       // the same world makes commits
  kLeavesWell,   // a planned change: no step is lost
  kDiskRecovers  // the job says that it can't write, trains on, and writes when it can again
};

struct KindFacts {
  FaultKind kind;
  absl::string_view name;      // in a campaign
  bool is_about_host = false;  // its target is a host, and not a rank
  bool lasts = false;          // it needs "seconds"
  bool delays = false;         // it needs "delay_ms"
  bool needs_hosts = false;    // two or more of them
  Expectation expectation;
  // How long it may take until it is noticed, as docs/reliability.md says.
  absl::Duration noticed_after = absl::ZeroDuration();
  absl::string_view expected;  // in the report
};

const KindFacts& FactsOf(FaultKind kind);

// nullptr: there is no such kind.
const KindFacts* FindKind(absl::string_view name);

// The names of all kinds, in the order of the documentation.
std::vector<absl::string_view> KindNames();

// Why this kind can't be rehearsed, after its name; empty: it is none of those.
absl::string_view WhyRefused(absl::string_view name);

// How long a stopped worker stays so before its agent kills it.
inline constexpr absl::Duration kStopLimit = absl::Seconds(10);
// Up to here it is certainly not killed.
inline constexpr absl::Duration kLongestPause = absl::Seconds(8);

}  // namespace hvd::rehearsal

#endif  // REHEARSAL_FAULT_KINDS_H_
