// The coordinator, rank 0's part of the negotiation: takes the announcements of all ranks and makes
// the plans of what all of them run next.
#ifndef WORKER_RUNTIME_NEGOTIATION_COORDINATOR_H_
#define WORKER_RUNTIME_NEGOTIATION_COORDINATOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/settings/runtime_env.h"
#include "worker_runtime/negotiation/deadlock.h"
#include "worker_runtime/negotiation/messages.h"
#include "worker_runtime/negotiation/readiness.h"
#include "worker_runtime/negotiation/signature_ids.h"
#include "worker_runtime/negotiation/stall.h"
#include "worker_runtime/negotiation/tuning/tuner.h"

namespace hvd::worker_runtime::negotiation {

struct CoordinatorOptions {
  settings::EngineEnv settings;
  int size = 1;
  std::optional<tuning::TunerOptions> tuner;  // nullopt: no autotuning
  bool fusion_copies = true;                  // fusion costs copies, so large tensors are not fused
  absl::Duration deadlock_patience = absl::InfiniteDuration();
};

// Pure: the state changes only by these calls, and time is an argument. Not thread-safe.
class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options);

  // Takes an announcement of a rank, rank 0 included.
  // Errors:
  //   - InvalidArgument: the announcement is invalid. The caller must end the epoch.
  absl::Status Announce(int rank, const Announcement& announcement, absl::Time now);

  // Returns the next plan for all ranks; nullopt: none yet. A plan with an end is the last one.
  std::optional<Plan> NextPlan(absl::Time now);

  // Returns when NextPlan must be called again even without a new announcement; InfiniteFuture:
  // there is no need.
  absl::Time NextDeadline() const;

  // Adds the order to the next plan.
  void OrderTimeline(TimelineOrder order) { timeline_order_ = order; }

  // Returns the tuner's samples since the last call.
  std::vector<tuning::TuningSample> TakeTuningSamples();

  // Returns a stall that NextPlan has found since the last call. If it has `give_up`, the caller
  // must end the epoch.
  std::optional<StallReport> TakeStall();

 private:
  // Looks for deadlocks and stalls.
  void LookForTrouble(absl::Time now);
  void CollectReady(absl::Time now);
  bool IsTimeToRun(absl::Time now) const;
  // Moves ready tensors into the plan's batches, as many as fit into a message.
  void PlanReady(Plan& plan, absl::Time now);
  std::vector<Failure> TakeFailures();
  void Tune(const std::vector<PlannedTensor>& tensors, absl::Time now);
  void PlanTensor(const Readiness::Tensor& tensor, Plan& plan, std::vector<PlannedTensor>& tensors);

  const CoordinatorOptions options_;
  Readiness readiness_;
  SignatureIds keeper_;
  tuning::Tunables tunables_;
  std::optional<tuning::Tuner> tuner_;
  DeadlockDetector deadlock_;
  StallInspector stall_;
  uint64_t last_sequence_ = 0;
  struct ReadyTensor {
    Readiness::Tensor tensor;
    size_t group = 0;  // not 0: may be fused with tensors of the same group only
  };
  std::deque<ReadyTensor> ready_;  // valid, and not in a plan yet
  size_t last_group_ = 0;
  size_t ready_bytes_ = 0;
  absl::Time ready_since_ = absl::InfiniteFuture();
  std::deque<Failure> failures_;                 // not in a plan yet
  std::optional<StallReport> stall_report_;      // not returned by TakeStall yet
  bool world_is_changing_ = false;               // some rank has announced it
  std::optional<TimelineOrder> timeline_order_;  // not in a plan yet
  std::optional<EpochEnd> end_;
  bool ended_ = false;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_COORDINATOR_H_
