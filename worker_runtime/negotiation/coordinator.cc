#include "worker_runtime/negotiation/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker_runtime/negotiation/fusion_planner.h"
#include "worker_runtime/negotiation/message_sizes.h"
#include "worker_runtime/negotiation/mismatch.h"

namespace hvd::worker_runtime::negotiation {
namespace {

const SignaturePtr& AnyOf(const Readiness::Tensor& tensor) {
  return *std::find_if(tensor.by_rank.begin(), tensor.by_rank.end(),
                       [](const SignaturePtr& signature) { return signature != nullptr; });
}

std::optional<std::string> FindMismatchInOperation(const Readiness::Operation& operation) {
  for (const Readiness::Tensor& tensor : operation) {
    std::optional<std::string> mismatch = FindMismatch(tensor.by_rank);
    if (!mismatch.has_value()) continue;
    if (operation.size() > 1) {
      absl::StrAppend(&*mismatch, " (the whole group of ", operation.size(), " tensors fails)");
    }
    return mismatch;
  }
  return std::nullopt;
}

// Whether this rank's all-to-all sends any rows.
bool SendsRows(const TensorSignature& signature) {
  if (signature.splits.empty()) return signature.shape.front() > 0;
  return std::any_of(signature.splits.begin(), signature.splits.end(),
                     [](int32_t rows) { return rows > 0; });
}

void PlanSplits(const std::vector<SignaturePtr>& by_rank, PlannedTensor& planned) {
  planned.senders = by_rank;
  const auto size = static_cast<int>(by_rank.size());
  for (const SignaturePtr& signature : by_rank) {
    planned.received_splits.push_back(RowsTo(*signature, 0, size));
  }
  planned.moves_nothing =
      RowBytes(*planned.signature) == 0 ||
      std::none_of(by_rank.begin(), by_rank.end(), [](const auto& s) { return SendsRows(*s); });
}

}  // namespace

Coordinator::Coordinator(const CoordinatorOptions& options)
    : options_(options),
      readiness_(options.size),
      keeper_(options.settings.cache_capacity, options.size),
      tunables_{options.settings.fusion_threshold_bytes, options.settings.cycle_time},
      deadlock_(options.size, options.deadlock_patience),
      stall_(options.settings) {
  if (options.tuner.has_value()) tuner_.emplace(*options.tuner, tunables_);
}

absl::Status Coordinator::Announce(int rank, const Announcement& announcement, absl::Time now) {
  keeper_.Acknowledge(rank, announcement.seen_sequence);
  std::vector<SignaturePtr> group;
  for (const auto& announced : announcement.groups) {
    group.clear();
    for (const AnnouncedTensor& tensor : announced) {
      const bool known = tensor.known_id != kNoSignatureId;
      // Also resolves an id that was evicted by a plan which this rank had not seen yet.
      group.push_back(known ? keeper_.Resolve(tensor.known_id) : tensor.signature);
      if (group.back() == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " has announced signature ",
                                                       tensor.known_id, ", which is not known"));
      }
    }
    RETURN_IF_ERROR(readiness_.Add(rank, group, now));
  }
  world_is_changing_ |= announcement.world_is_changing;
  deadlock_.SetBlocked(rank, announcement.blocked_on, announcement.seen_sequence);
  // The first end counts: the others are mostly its consequences.
  if (announcement.end.has_value() && !end_.has_value()) end_ = announcement.end;
  return absl::OkStatus();
}

std::optional<Plan> Coordinator::NextPlan(absl::Time now) {
  // Ranks stop reading at the plan with the end: another one would stay in a peer's socket.
  if (ended_) return std::nullopt;
  CollectReady(now);
  LookForTrouble(now);
  // A rank that leaves cleanly still takes part in operations that are ready; a broken one can't.
  const bool run =
      !ready_.empty() && (end_.has_value() ? end_->kind == EndKind::kLeft : IsTimeToRun(now));
  if (!run && failures_.empty() && !end_.has_value() && !timeline_order_.has_value()) {
    return std::nullopt;
  }
  Plan plan;
  // Set before PlanReady: evictions are recorded under this number.
  plan.sequence = ++last_sequence_;
  if (run) PlanReady(plan, now);
  plan.failures = TakeFailures();
  plan.timeline = std::exchange(timeline_order_, std::nullopt);
  // A plan holds a bounded number of operations and failures. Before a clean end the rest of them
  // goes into further plans, and the last plan announces the end.
  const bool rest_goes_first =
      end_.has_value() && end_->kind == EndKind::kLeft && !(ready_.empty() && failures_.empty());
  if (rest_goes_first) return plan;
  plan.end = end_;
  ended_ = end_.has_value();
  return plan;
}

std::vector<Failure> Coordinator::TakeFailures() {
  std::vector<Failure> taken;
  // Checked before a failure is taken, so that one of any size makes progress.
  for (size_t bytes = 0; !failures_.empty() && bytes < kGoodMessageBytes; failures_.pop_front()) {
    bytes += WireBytes(failures_.front());
    taken.push_back(std::move(failures_.front()));
  }
  return taken;
}

void Coordinator::CollectReady(absl::Time now) {
  // Only rank 0 compares the requests. A mismatch becomes a failure in the plan, so that it is
  // the same error, at the same point, on all ranks.
  for (Readiness::Operation& operation : readiness_.TakeReady()) {
    std::optional<std::string> mismatch = FindMismatchInOperation(operation);
    if (mismatch.has_value()) {
      Failure& failure = failures_.emplace_back();
      failure.message = *std::move(mismatch);
      for (const auto& tensor : operation) failure.names.push_back(AnyOf(tensor)->name);
      continue;
    }
    // The oldest ready tensor determines when all of them run, so that none waits for longer than a
    // cycle.
    if (ready_.empty()) ready_since_ = now;
    const size_t group =
        options_.settings.disable_group_fusion && operation.size() > 1 ? ++last_group_ : 0;
    for (Readiness::Tensor& tensor : operation) {
      ready_bytes_ += ByteCount(*AnyOf(tensor));
      ready_.push_back({std::move(tensor), group});
    }
  }
}

void Coordinator::LookForTrouble(absl::Time now) {
  // While tensors are ready there can be no deadlock: running them may wake the blocked ranks.
  if (ready_.empty()) {
    deadlock_.Update(readiness_, last_sequence_, now);
    if (deadlock_.deadline() <= now) failures_.push_back(deadlock_.Break(readiness_));
  }
  if (readiness_.waiting().empty()) return;
  stall_.Watch(now);
  // An inspection sorts all waiting tensors, so it must not happen for each announcement.
  if (stall_.next_look() > now) return;
  StallReport report = stall_.Look(readiness_, now);
  if (!report.waiting.empty()) stall_report_ = std::move(report);
}

// Ready tensors wait for others to be fused with: for a cycle, or until they fill a batch.
bool Coordinator::IsTimeToRun(absl::Time now) const {
  return now - ready_since_ >= tunables_.cycle_time ||
         ready_bytes_ >= tunables_.fusion_threshold_bytes;
}

absl::Time Coordinator::NextDeadline() const {
  // Failures that did not fit into the last plan go into the next one at once.
  if (!failures_.empty()) return absl::InfinitePast();
  absl::Time deadline = readiness_.waiting().empty() ? absl::InfiniteFuture() : stall_.next_look();
  if (!ready_.empty()) return std::min(deadline, ready_since_ + tunables_.cycle_time);
  return std::min(deadline, deadlock_.deadline());
}

std::optional<StallReport> Coordinator::TakeStall() {
  return std::exchange(stall_report_, std::nullopt);
}

std::vector<tuning::TuningSample> Coordinator::TakeTuningSamples() {
  return tuner_.has_value() ? tuner_->TakeSamples() : std::vector<tuning::TuningSample>();
}

void Coordinator::PlanReady(Plan& plan, absl::Time now) {
  std::vector<PlannedTensor> tensors;
  std::vector<size_t> groups;
  for (size_t bytes = 0; !ready_.empty() && bytes < kGoodMessageBytes; ready_.pop_front()) {
    PlanTensor(ready_.front().tensor, plan, tensors);
    groups.push_back(ready_.front().group);
    bytes += WireBytes(tensors.back());
    ready_bytes_ -= ByteCount(*tensors.back().signature);
  }
  // Before the fusion, which uses the tunables.
  if (tuner_.has_value()) Tune(tensors, now);
  const size_t large = options_.fusion_copies ? kLargeTensorBytes : kLargestBatchBytes;
  plan.batches = PlanFusion(std::move(tensors), tunables_.fusion_threshold_bytes, groups, large);
}

void Coordinator::Tune(const std::vector<PlannedTensor>& tensors, absl::Time now) {
  for (const PlannedTensor& tensor : tensors) {
    const size_t bytes = ByteCount(*tensor.signature);
    // Barriers and joins move no data, so they say nothing about throughput.
    if (bytes > 0) tuner_->Observe(tensor.signature->name, bytes, now);
  }
  tunables_ = tuner_->tunables();
}

void Coordinator::PlanTensor(const Readiness::Tensor& tensor, Plan& plan,
                             std::vector<PlannedTensor>& tensors) {
  PlannedTensor& planned = tensors.emplace_back();
  planned.signature = AnyOf(tensor);
  const OpKind op = planned.signature->op;
  if (Has(op, OpTrait::kHasSplits)) {
    PlanSplits(tensor.by_rank, planned);
  } else if (Has(op, OpTrait::kRowsDiffer)) {
    for (const SignaturePtr& signature : tensor.by_rank) {
      planned.first_dims.push_back(signature->shape.front());
    }
  } else if (op == OpKind::kJoin) {
    planned.last_joined_rank = readiness_.last_joined_rank();
  } else {  // the plan needs nothing but the signature, so an id can replace it next time
    planned.known_id = keeper_.Use(*planned.signature);
    if (planned.known_id == kNoSignatureId) {
      planned.new_id = keeper_.Insert(planned.signature, plan);
    }
  }
  // Decided here, once, so that the result of a commit is the same on all ranks.
  planned.world_is_changing = op == OpKind::kCommit && world_is_changing_;
  if (tensor.submitted == options_.size) return;
  for (size_t rank = 0; rank < tensor.by_rank.size(); ++rank) {
    if (tensor.by_rank[rank] == nullptr) planned.absent_ranks.push_back(static_cast<int>(rank));
  }
}

}  // namespace hvd::worker_runtime::negotiation
