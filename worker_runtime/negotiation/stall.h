// Stall detection: ranks that keep others waiting.
#ifndef WORKER_RUNTIME_NEGOTIATION_STALL_H_
#define WORKER_RUNTIME_NEGOTIATION_STALL_H_

#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/settings/runtime_env.h"
#include "worker_runtime/negotiation/readiness.h"

namespace hvd::worker_runtime::negotiation {

// Operations that wait for the same ranks.
struct StalledGroup {
  std::string what;  // "allreduce 'grad.w' and 3 more"
  std::vector<int> missing;
};

// The result of a check of the table. A stall is reported once, and again only when it has become 5
// times as old, or another rank is missing.
struct StallReport {
  absl::Duration waited;              // the longest
  bool give_up = false;               // too long; the last report
  std::vector<StalledGroup> waiting;  // oldest first, at most a handful; empty: no report
};

// "Stalled for 1m in allreduce 'grad.w' and 3 more, waiting for rank 1"
std::string StallText(const StallReport& report);

// Not thread-safe.
class StallInspector {
 public:
  explicit StallInspector(const settings::EngineEnv& settings);

  // Something waits: schedules a check.
  void Watch(absl::Time now);
  // When Look is due; InfiniteFuture while nothing is scheduled.
  absl::Time next_look() const { return next_look_; }
  // REQUIRES: next_look() <= now.
  StallReport Look(const Readiness& readiness, absl::Time now);

 private:
  // When an operation that waits for `missing` since `since` must be reported.
  absl::Time DueAt(absl::Time since, const std::vector<int>& missing, absl::Time oldest) const;

  const absl::Duration warn_after_, give_up_after_;
  absl::Time next_look_ = absl::InfiniteFuture();
  absl::Time last_warning_ = absl::InfinitePast();
  std::set<int> told_;  // the ranks that were missing then
  bool gave_up_ = false;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_STALL_H_
