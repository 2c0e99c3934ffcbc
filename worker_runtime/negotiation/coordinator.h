// The coordinator: rank 0's part of the negotiation. Takes the ranks' announcements and plans what
// all of them run next.
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
  std::optional<tuning::TunerOptions> tuner;  // finds better ones; nullopt: they stay
  bool fusion_copies = true;                  // so that large tensors had better go alone
  absl::Duration deadlock_patience = absl::InfiniteDuration();
};

// Pure and not thread-safe: only the calls below change its state.
class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options);

  // Takes an announcement of a rank (rank 0 included).
  // Errors:
  //   - InvalidArgument: it is invalid, and the epoch is broken.
  absl::Status Announce(int rank, const Announcement& announcement, absl::Time now);

  // The next plan for all ranks; nullopt: none yet. A plan with an end is the last.
  std::optional<Plan> NextPlan(absl::Time now);

  // When NextPlan must be called again without a new announcement; InfiniteFuture if it need not
  // be.
  absl::Time NextDeadline() const;

  // Puts the order into the next plan to all ranks.
  void OrderTimeline(TimelineOrder order) { timeline_order_ = std::move(order); }

  // The tuner's samples since the last call.
  std::vector<tuning::TuningSample> TakeTuningSamples();

  // A stall found by NextPlan since the last call. If `give_up`, the caller must end the epoch.
  std::optional<StallReport> TakeStall();

 private:
  void LookForTrouble(absl::Time now);
  void CollectReady(absl::Time now);
  bool IsTimeToRun(absl::Time now) const;
  // Turns ready tensors into batches, as many as a plan should hold.
  void PlanReady(Plan& plan, absl::Time now);
  std::vector<Failure> TakeFailures();
  void Tune(const std::vector<PlannedTensor>& tensors, absl::Time now);
  void PlanTensor(const Readiness::Tensor& tensor, Plan& plan, std::vector<PlannedTensor>& tensors);

  const CoordinatorOptions options_;
  Readiness readiness_;
  SignatureKeeper keeper_;
  tuning::Tunables tunables_;
  std::optional<tuning::Tuner> tuner_;
  DeadlockDetector deadlock_;
  StallInspector stall_;
  uint64_t last_sequence_ = 0;
  struct ReadyTensor {
    Readiness::Tensor tensor;
    size_t group = 0;  // not 0: it is fused with tensors of the same group only
  };
  std::deque<ReadyTensor> ready_;  // valid, and not in a plan yet
  size_t last_group_ = 0;
  size_t ready_bytes_ = 0;
  absl::Time ready_since_ = absl::InfiniteFuture();
  std::deque<Failure> failures_;                 // not in a plan yet
  std::optional<StallReport> stall_report_;      // not taken yet
  bool world_is_changing_ = false;               // some rank has announced it
  std::optional<TimelineOrder> timeline_order_;  // not in a plan yet
  std::optional<EpochEnd> end_;
  bool ended_ = false;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_COORDINATOR_H_
