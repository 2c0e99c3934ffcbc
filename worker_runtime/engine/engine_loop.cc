#include "worker_runtime/engine/engine_loop.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "worker_runtime/engine/batch_check.h"
#include "worker_runtime/negotiation/message_codec.h"
#include "worker_runtime/negotiation/message_sizes.h"

namespace hvd::worker_runtime::engine {
namespace {

// How long a leaving rank waits for rank 0's plan that ends the epoch. Rank 0 answers at once
// unless it is stuck; after this time the rank leaves without the answer.
constexpr absl::Duration kLeavePatience = absl::Seconds(5);
// A rank without new operations still announces after this many plans with evictions. The
// announcement acknowledges the plans: rank 0 keeps an evicted signature until all ranks have.
constexpr int kMostUnacknowledgedEvictions = 64;

negotiation::CoordinatorOptions ToCoordinatorOptions(
    const EngineOptions& options, const collectives::Communicator& communicator) {
  negotiation::CoordinatorOptions result;
  result.settings = options.settings;
  result.size = communicator.size();
  result.fusion_copies = !communicator.TakesPieces();
  result.tuner = options.tuner;
  result.deadlock_patience = options.deadlock_time;
  return result;
}

// These codes mean that the backend can't do what was requested, on any rank. All other codes mean
// that the network or a peer has failed.
bool FailsOnlyTheOperation(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsInvalidArgument(status);
}

bool IsAbsent(const negotiation::PlannedTensor& tensor, int rank) {
  return std::find(tensor.absent_ranks.begin(), tensor.absent_ranks.end(), rank) !=
         tensor.absent_ranks.end();
}

}  // namespace

EngineLoop::EngineLoop(const EngineOptions& options, collectives::Communicator& communicator,
                       std::unique_ptr<control::ControlChannel> control, TensorQueue& queue,
                       BlockedWaits& blocked)
    : options_(options),
      rank_(communicator.rank()),
      size_(communicator.size()),
      communicator_(communicator),
      control_(std::move(control)),
      queue_(queue),
      blocked_(blocked),
      timeline_(*options_.recorder, communicator, options.collective_timeout),
      executor_(communicator, options.collective_timeout, *options_.recorder, options.process_set),
      devices_(options.connect_devices, options.local_rank, options.collective_timeout,
               *options_.recorder, options.process_set) {
  if (rank_ == 0) {
    coordinator_ =
        std::make_unique<negotiation::Coordinator>(ToCoordinatorOptions(options, communicator));
  }
}

void EngineLoop::OrderTimeline(negotiation::TimelineOrder order,
                               std::shared_ptr<timeline::TraceFile> file) {
  timeline_.Order(std::move(order), std::move(file));
  Wake();
}

void EngineLoop::SetWorldChanging() {
  world_is_changing_.store(true);
  Wake();
}

void EngineLoop::Leave() {
  leaving_.store(true);
  Wake();
}

void EngineLoop::Abort(const absl::Status& reason) {
  {
    absl::MutexLock lock(&mutex_);
    abort_reason_.Update(reason);
  }
  aborted_.store(true);
  communicator_.Abort(reason.message());
  devices_.Abort(reason.message());
  Wake();
}

void EngineLoop::End(absl::Status status) {
  // Peers may still have to read the last messages of this rank.
  constexpr absl::Duration kFinishPatience = absl::Seconds(1);
  // After Abort: how long rank 0 waits for the timeline events of the ranks that still live.
  constexpr absl::Duration kBrokenTimelinePatience = absl::Milliseconds(100);
  status = Conclude(std::move(status));
  if (options_.on_end) options_.on_end(status, HasLeft(), unreached_);
  // The queue is closed before the tensors of the failed collective finish: a thread that has seen
  // an operation fail must not be able to submit another one to this epoch.
  queue_.Close(status);
  for (const OperationTensor& tensor : broken_) tensor.Finish(status);
  SendLastEvents();
  const bool awaits_events = aborted_.load() && timeline_.AwaitsParts();
  // After Abort there is nothing to wait for but timeline events: the other ranks were aborted as
  // well, and one that was not may be dead.
  control_->Finish(
      awaits_events ? kBrokenTimelinePatience : kFinishPatience,
      [this] { return aborted_.load() && !timeline_.AwaitsParts(); },
      [this](const control::ControlChannel::Message& message) { TakeLastEvents(message); });
  timeline_.CloseFiles();
}

absl::Status EngineLoop::RunCycle() {
  if (inbox_.empty()) RETURN_IF_ERROR(FillInbox(absl::ZeroDuration()));
  options_.recorder->Cycle(options_.process_set);
  RETURN_IF_ERROR(CheckOrders());
  RETURN_IF_ERROR(AnnounceNew());
  RETURN_IF_ERROR(HandleInbox());
  return RunNextPlan();
}

absl::Duration EngineLoop::ReceiveTimeout() const {
  const absl::Time now = Clock::Real().Now();
  absl::Time deadline = std::min(leave_by_, timeline_.NextDue(now));
  deadline = std::min(deadline, queue_.TakeNewBy(options_.gather_time));
  if (is_root()) deadline = std::min(deadline, coordinator_->NextDeadline());
  if (deadline == absl::InfiniteFuture()) return absl::InfiniteDuration();
  return std::max(deadline - now, absl::ZeroDuration());
}

absl::Status EngineLoop::CheckOrders() {
  if (aborted_.load()) {
    absl::MutexLock lock(&mutex_);
    return abort_reason_;
  }
  if (leave_by_ != absl::InfiniteFuture() && Clock::Real().Now() >= leave_by_) {
    return LeftWorldError(rank_);
  }
  return absl::OkStatus();
}

absl::Status EngineLoop::AnnounceNew() {
  negotiation::Announcement announcement;
  if (!FillAnnouncement(announcement)) return absl::OkStatus();
  unacknowledged_evictions_ = 0;
  announced_sequence_ = seen_sequence_;
  return Announce(std::move(announcement));
}

bool EngineLoop::FillAnnouncement(negotiation::Announcement& announcement) {
  announcement.seen_sequence = seen_sequence_;
  const absl::Time now = Clock::Real().Now();
  const bool must_go = somebody_waits_.exchange(false) || leaving_.load() ||
                       now >= queue_.TakeNewBy(options_.gather_time);
  for (const OperationPtr& operation : must_go ? queue_.TakeNew() : std::vector<OperationPtr>()) {
    auto& group = announcement.groups.emplace_back();
    for (const negotiation::SignaturePtr& signature : operation->signatures) {
      const negotiation::SignatureId id = known_.Find(*signature);
      group.push_back(id == negotiation::kNoSignatureId
                          ? negotiation::AnnouncedTensor{id, signature}
                          : negotiation::AnnouncedTensor{id, nullptr});
    }
  }
  // Rank 0 would otherwise count the wait until this rank's next announcement, and might take
  // ranks that wait for this one for a deadlock. Read before the waits, which were changed first.
  const bool gives_up_wait = wait_given_up_.exchange(false);
  BlockedWaits::Snapshot blocked = blocked_.Get();
  // A wait is announced again after each plan, because rank 0's deadlock detection counts only
  // waits that the newest plan has not ended; see DeadlockDetector.
  const bool blocked_anew =
      !blocked.names.empty() &&
      (blocked.version != announced_blocked_version_ || seen_sequence_ != announced_sequence_);
  announced_blocked_version_ = blocked.version;
  announcement.blocked_on = std::move(blocked.names);
  // Announced without delay, so that the next commit on any rank reports it.
  announcement.world_is_changing = world_is_changing_.load();
  const bool changes = announcement.world_is_changing && !announced_change_;
  announced_change_ = announcement.world_is_changing;
  const bool leaves = leaving_.load() && leave_by_ == absl::InfiniteFuture();
  if (leaves) {
    leave_by_ = now + kLeavePatience;
    announcement.end.emplace(negotiation::EpochEnd{rank_, WithRanksNote(LeftWorldError(rank_)),
                                                   negotiation::EndKind::kLeft});
  }
  announcement.timeline = timeline_.NextPart(now);
  return !announcement.groups.empty() || blocked_anew || gives_up_wait || changes || leaves ||
         announcement.timeline.has_value() ||
         unacknowledged_evictions_ >= kMostUnacknowledgedEvictions;
}

absl::Status EngineLoop::Announce(negotiation::Announcement announcement) {
  if (is_root()) return Heard(rank_, std::move(announcement));
  for (const negotiation::Announcement& part : negotiation::Split(std::move(announcement))) {
    RETURN_IF_ERROR(control_->Send(0, negotiation::Encode(part)));
  }
  return absl::OkStatus();
}

absl::Status EngineLoop::SendPlan(const negotiation::Plan& plan) {
  // Encoded once for all members, unless the plan has parts that differ by rank (the received
  // splits of an all-to-all).
  const bool is_alike = negotiation::IsAlikeForAll(plan);
  absl::Status status;
  std::string bytes;
  for (int peer = 1; peer < size_; ++peer) {
    if (peer == 1 || !is_alike) bytes = negotiation::Encode(plan, peer);
    status.Update(control_->Send(peer, bytes));
  }
  return status;
}

absl::Status EngineLoop::Heard(int rank, negotiation::Announcement announcement) {
  if (announcement.timeline.has_value()) {
    timeline_.Receive(rank, *std::move(announcement.timeline));
  }
  return coordinator_->Announce(rank, announcement, Clock::Real().Now());
}

absl::Status EngineLoop::FillInbox(absl::Duration timeout) {
  // Messages are queued rather than handled here, because Help and LookForCause receive them, too.
  ASSIGN_OR_RETURN(std::vector<control::ControlChannel::Message> messages,
                   control_->Receive(timeout));
  std::move(messages.begin(), messages.end(), std::back_inserter(inbox_));
  return absl::OkStatus();
}

absl::Status EngineLoop::HandleInbox() {
  while (!inbox_.empty()) {
    // Removed before it is handled: if it ends the epoch, LookForCause searches the rest.
    const control::ControlChannel::Message message = std::move(inbox_.front());
    inbox_.pop_front();
    if (is_root()) {
      RETURN_IF_ERROR(HandleAnnouncement(message));
    } else {
      ASSIGN_OR_RETURN(const negotiation::Plan plan,
                       negotiation::DecodePlan(message.bytes, size_, known_));
      RETURN_IF_ERROR(CarryOut(plan));
    }
  }
  return absl::OkStatus();
}

absl::Status EngineLoop::HandleAnnouncement(const control::ControlChannel::Message& message) {
  ASSIGN_OR_RETURN(negotiation::Announcement announcement,
                   negotiation::DecodeAnnouncement(message.bytes, size_));
  if (announcement.end.has_value() &&
      announcement.end->kind == negotiation::EndKind::kCollectiveFailed) {
    collective_failed_ = true;
    return announcement.end->status;
  }
  return Heard(message.peer, std::move(announcement));
}

absl::Status EngineLoop::RunNextPlan() {
  if (!is_root()) return absl::OkStatus();
  if (auto order = timeline_.TakeOrder()) coordinator_->OrderTimeline(*std::move(order));
  std::optional<negotiation::Plan> plan = coordinator_->NextPlan(Clock::Real().Now());
  const absl::Status stalled = ReportStall();
  for (const negotiation::tuning::TuningSample& sample : coordinator_->TakeTuningSamples()) {
    if (options_.on_tuning_sample) options_.on_tuning_sample(sample);
  }
  if (!plan.has_value()) return stalled;
  if (size_ > 1) {
    RETURN_IF_ERROR(SendPlan(*plan));
    // Rank 0 is about to block in the plan's first collective, which the members can join only
    // when they have the whole plan: nothing of it may stay in a send buffer.
    RETURN_IF_ERROR(control_->Flush(options_.collective_timeout));
  }
  RETURN_IF_ERROR(CarryOut(*plan));
  return stalled;
}

absl::Status EngineLoop::ReportStall() {
  const std::optional<negotiation::StallReport> report = coordinator_->TakeStall();
  if (!report.has_value()) return absl::OkStatus();
  if (options_.on_stall) {
    options_.on_stall(*report);
    return absl::OkStatus();
  }
  return report->give_up ? absl::DeadlineExceededError(negotiation::StallText(*report))
                         : absl::OkStatus();
}

absl::Status EngineLoop::CarryOut(const negotiation::Plan& plan) {
  known_.Apply(plan);
  if (!plan.evicted_ids.empty()) ++unacknowledged_evictions_;
  if (plan.timeline.has_value()) {
    RETURN_IF_ERROR(timeline_.CarryOut(*plan.timeline));
    if (options_.on_timeline_order) options_.on_timeline_order(*plan.timeline);
  }
  for (const negotiation::Failure& failure : plan.failures) Deliver(failure);
  for (const negotiation::Batch& batch : plan.batches) RETURN_IF_ERROR(RunBatch(batch));
  seen_sequence_ = plan.sequence;
  if (!plan.end.has_value()) return absl::OkStatus();
  end_ = plan.end;
  return end_->status;
}

// Plans name tensors only. Each rank finds its own memory for them in its queue; a rank that has
// joined takes part with the neutral element in place of a tensor.
absl::Status EngineLoop::RunBatch(const negotiation::Batch& batch) {
  const absl::Time began = options_.recorder->Begin();
  Executor::Parts parts;
  for (const negotiation::PlannedTensor& tensor : batch) {
    if (IsAbsent(tensor, rank_)) {
      parts.emplace_back();
      continue;
    }
    parts.push_back(queue_.Take(tensor.signature->name));
    if (!parts.back().has_value()) {
      NoteBroken(parts);
      return absl::InternalError(absl::StrCat("the plan names '", tensor.signature->name,
                                              "', which rank ", rank_, " has not submitted"));
    }
    RecordPlanned(*parts.back());
  }
  const absl::Status fits = CheckBatch(batch, parts, rank_, size_);
  if (!fits.ok()) {
    NoteBroken(parts);
    return fits;
  }
  absl::Status status = FAILPOINT_STATUS("worker.operation.agreed");
  if (status.ok())
    status = batch.front().signature->on_device ? devices_.Run(batch, parts)
                                                : executor_.Run(batch, parts);
  FAILPOINT("worker.operation.done");
  if (began != absl::InfinitePast()) {
    std::vector<negotiation::SignaturePtr> tensors;
    for (const negotiation::PlannedTensor& tensor : batch) tensors.push_back(tensor.signature);
    options_.recorder->Operation(options_.process_set, began, std::move(tensors));
  }
  if (!status.ok() && !FailsOnlyTheOperation(status)) {
    // Lack of memory is this rank's own problem; any other error may be a consequence of another
    // rank's failure, so Conclude looks for its cause.
    collective_failed_ = !absl::IsResourceExhausted(status);
    if (!collective_failed_) {
      status = absl::ResourceExhaustedError(absl::StrCat("rank ", rank_, ": ", status.message()));
    }
    NoteBroken(parts);
    return status;
  }
  // A commit is never fused with other operations, so the first tensor speaks for the batch.
  if (batch.front().world_is_changing && options_.on_world_changing) options_.on_world_changing();
  for (const auto& part : parts) {
    if (part.has_value()) part->Finish(status);
  }
  return absl::OkStatus();
}

void EngineLoop::NoteBroken(const Executor::Parts& parts) {
  for (const auto& part : parts) {
    if (part.has_value()) broken_.push_back(*part);
  }
}

void EngineLoop::RecordPlanned(const OperationTensor& tensor) {
  options_.recorder->Planned(options_.process_set, tensor.operation->submission, tensor.index,
                             tensor.operation->signatures[tensor.index]);
}

void EngineLoop::Deliver(const negotiation::Failure& failure) {
  for (const std::string& name : failure.names) {
    std::optional<OperationTensor> tensor = queue_.Take(name);
    // The operations of a deadlock are missing on the ranks that have not submitted them.
    if (!tensor.has_value()) continue;
    RecordPlanned(*tensor);
    tensor->Finish(WithRanksNote(absl::InvalidArgumentError(failure.message)));
  }
}

}  // namespace hvd::worker_runtime::engine
