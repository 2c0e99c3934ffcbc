// The stall inspector: finds operations that have waited too long for some ranks.
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

// The result of an inspection. A stall is reported once, and again only when it is 5 times as old
// or another rank is missing.
struct StallReport {
  absl::Duration waited;              // the longest wait
  bool give_up = false;               // the limit has passed; this is the last report
  std::vector<StalledGroup> waiting;  // oldest first, at most a handful; empty: no report
};

// "Stalled for 1m in allreduce 'grad.w' and 3 more, waiting for rank 1"
std::string StallText(const StallReport& report);

// Not thread-safe.
class StallInspector {
 public:
  explicit StallInspector(const settings::EngineEnv& settings);

  // Schedules an inspection, because something waits, unless one is scheduled.
  void Watch(absl::Time now);
  // When Look is due; InfiniteFuture: no inspection is scheduled.
  absl::Time next_look() const { return next_look_; }
  // Inspects the table, and schedules the next inspection. REQUIRES: next_look() <= now.
  StallReport Look(const Readiness& readiness, absl::Time now);

 private:
  // Returns when an operation that has waited for `missing` since `since` must be reported.
  absl::Time DueAt(absl::Time since, const std::vector<int>& missing, absl::Time oldest) const;

  const absl::Duration warn_after_, give_up_after_;
  absl::Time next_look_ = absl::InfiniteFuture();
  absl::Time last_warning_ = absl::InfinitePast();
  std::set<int> told_;  // the ranks that were missing at last_warning_
  bool gave_up_ = false;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_STALL_H_
