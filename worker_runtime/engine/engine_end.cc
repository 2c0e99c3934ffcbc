// The end of an epoch: finding its reason, and reporting that to the other ranks.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "collectives/unreached_rank.h"
#include "worker_runtime/engine/engine_loop.h"
#include "worker_runtime/negotiation/message_codec.h"

namespace hvd::worker_runtime::engine {
namespace {

// How long to look for the cause of a failed collective. Rank 0 looks first and then reports the
// result to the members, so they wait for longer.
constexpr absl::Duration kRootCausePatience = absl::Milliseconds(200);
constexpr absl::Duration kMemberCausePatience = absl::Seconds(1);

}  // namespace

absl::Status LeftWorldError(int rank) {
  return absl::AbortedError(
      absl::StrCat("Horovod has been shut down while this rank still called collectives. Rank ",
                   rank, " left first; its output may tell why."));
}

bool EngineLoop::HasLeft() const {
  if (aborted_.load()) return false;
  return leaving_.load() || (end_.has_value() && end_->kind == negotiation::EndKind::kLeft);
}

absl::Status EngineLoop::WithRanksNote(const absl::Status& status) const {
  if (absl::StrContains(status.message(), options_.ranks_note)) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), options_.ranks_note));
}

absl::Status EngineLoop::Conclude(absl::Status status) {
  // The plan that has ended the epoch cleanly has reached all ranks.
  if (end_.has_value() && end_->kind == negotiation::EndKind::kLeft) return status;
  // Before other reports take the place of this rank's own.
  unreached_ = collectives::UnreachedRankOf(status);
  if (!unreached_.has_value()) unreached_ = communicator_.FindUnreached();
  if (aborted_.load()) {
    absl::MutexLock lock(&mutex_);
    status = abort_reason_;
  }
  // To users InvalidArgument means a mismatch, after which the engine stays usable. Here it means
  // that a peer has sent an invalid message, which ends the epoch.
  if (absl::IsInvalidArgument(status)) status = absl::InternalError(status.message());
  // Breaks the data connections, so that a rank in the middle of a collective with this one fails
  // now, not at its deadline.
  communicator_.Abort(status.message());
  devices_.Abort(status.message());
  if (end_.has_value()) return status;
  // The reason given to Abort names ranks of the world, so a process set's note would be wrong.
  if (!aborted_.load()) status = WithRanksNote(status);
  if (!is_root()) ReportToRoot(status);
  if (collective_failed_ && !aborted_.load()) {
    status = LookForCause(status);
    if (!aborted_.load()) status = WithRanksNote(status);
  }
  if (is_root()) ReportToMembers(status);
  return status;
}

void EngineLoop::SendLastEvents() {
  timeline_.Stop();
  while (auto part = timeline_.NextPart(Clock::Real().Now())) {
    if (is_root()) {
      timeline_.Receive(rank_, *std::move(part));
      continue;
    }
    negotiation::Announcement announcement;
    announcement.seen_sequence = seen_sequence_;
    announcement.timeline = *std::move(part);
    control_->Send(0, negotiation::Encode(announcement)).IgnoreError();
  }
  for (; !inbox_.empty(); inbox_.pop_front()) TakeLastEvents(inbox_.front());
}

void EngineLoop::TakeLastEvents(const control::ControlChannel::Message& message) {
  if (!is_root()) return;
  absl::StatusOr<negotiation::Announcement> announcement =
      negotiation::DecodeAnnouncement(message.bytes, size_);
  if (!announcement.ok() || !announcement->timeline.has_value()) return;
  timeline_.Receive(message.peer, *std::move(announcement->timeline));
}

void EngineLoop::ReportToMembers(const absl::Status& status) {
  const negotiation::Announcement announcement{
      seen_sequence_, {}, {}, negotiation::EpochEnd{rank_, status}};
  coordinator_->Announce(rank_, announcement, Clock::Real().Now()).IgnoreError();
  const std::optional<negotiation::Plan> plan = coordinator_->NextPlan(Clock::Real().Now());
  if (!plan.has_value()) return;
  SendPlan(*plan).IgnoreError();  // fails for the members that are gone
}

void EngineLoop::ReportToRoot(const absl::Status& status) {
  // What was changed on the way is seen by its receiver only: the others just lose a connection.
  const bool consequence = collective_failed_ && !aborted_.load() && !absl::IsDataLoss(status);
  const negotiation::EndKind kind =
      consequence ? negotiation::EndKind::kCollectiveFailed : negotiation::EndKind::kBroken;
  const negotiation::Announcement announcement{
      seen_sequence_, {}, {}, negotiation::EpochEnd{rank_, status, kind}};
  control_->Send(0, negotiation::Encode(announcement)).IgnoreError();
}

absl::Status EngineLoop::LookForCause(const absl::Status& own) {
  const absl::Duration patience = is_root() ? kRootCausePatience : kMemberCausePatience;
  const absl::Time deadline = Clock::Real().Now() + patience;
  while (size_ > 1) {
    while (!inbox_.empty()) {
      std::optional<absl::Status> cause = FindCause(inbox_.front());
      inbox_.pop_front();
      if (cause.has_value()) return *std::move(cause);
    }
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) break;
    absl::Status received = FillInbox(left);
    if (!received.ok()) {
      if (!unreached_.has_value()) unreached_ = collectives::UnreachedRankOf(received);
      return received;  // names the rank whose connection was lost
    }
    if (!aborted_.load()) continue;
    absl::MutexLock lock(&mutex_);
    return abort_reason_;
  }
  return own;
}

std::optional<absl::Status> EngineLoop::FindCause(const control::ControlChannel::Message& message) {
  if (!is_root()) {
    const absl::StatusOr<negotiation::Plan> plan =
        negotiation::DecodePlan(message.bytes, size_, known_);
    if (!plan.ok()) return plan.status();
    known_.Apply(*plan);
    if (plan->end.has_value()) return plan->end->status;
    return std::nullopt;
  }
  const absl::StatusOr<negotiation::Announcement> announcement =
      negotiation::DecodeAnnouncement(message.bytes, size_);
  // That the collective has failed on another rank as well explains nothing. That a rank has left,
  // was aborted or has received an invalid message does.
  const bool tells_why = announcement.ok() && announcement->end.has_value() &&
                         announcement->end->kind != negotiation::EndKind::kCollectiveFailed;
  if (tells_why) return announcement->end->status;
  return std::nullopt;
}

}  // namespace hvd::worker_runtime::engine
