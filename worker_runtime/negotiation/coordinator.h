// Rank 0's mind: takes what the ranks announce and decides what all of them run next.
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

// Pure and not thread-safe: state is changed by the calls below and by nothing else.
class Coordinator {
 public:
  explicit Coordinator(const CoordinatorOptions& options);

  // Takes in what a rank (rank 0 included) says.
  //   InvalidArgument: it makes no sense, and the epoch is broken.
  absl::Status Announce(int rank, const Announcement& announcement, absl::Time now);

  // What all ranks must carry out next; nullopt: nothing yet. After a plan with an end there are no
  // more.
  std::optional<Plan> NextPlan(absl::Time now);

  // When NextPlan should be asked again although nobody has announced anything; InfiniteFuture if
  // there is no need.
  absl::Time NextDeadline() const;

  // The next plan carries it to all ranks.
  void OrderTimeline(TimelineOrder order) { timeline_order_ = std::move(order); }

  // What the tuner has measured since the last call.
  std::vector<tuning::TuningSample> TakeTuningSamples();

  // What keeps waiting, if NextPlan has found since the last call that this is to be told. What is
  // to end for it the caller has to end.
  std::optional<StallReport> TakeStall();

 private:
  void LookForTrouble(absl::Time now);
  void CollectReady(absl::Time now);
  bool IsTimeToRun(absl::Time now) const;
  // Turns what is ready into batches, as much of it as a plan should hold.
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
    size_t group = 0;  // other than 0: it is fused with tensors of the same only
  };
  std::deque<ReadyTensor> ready_;  // valid, and not in a plan yet
  size_t last_group_ = 0;
  size_t ready_bytes_ = 0;
  absl::Time ready_since_ = absl::InfiniteFuture();
  std::deque<Failure> failures_;                 // not in a plan yet
  std::optional<StallReport> stall_report_;      // not taken yet
  bool world_is_changing_ = false;               // some rank has said so
  std::optional<TimelineOrder> timeline_order_;  // not in a plan yet
  std::optional<EpochEnd> end_;
  bool ended_ = false;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_COORDINATOR_H_
