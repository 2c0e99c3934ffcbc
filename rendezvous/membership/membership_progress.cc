// How far the job is, what failures have cost it, and what becomes of worlds that end before they
// have done anything although nobody failed.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// Before the next world, after the second idle one in a row; doubles.
constexpr absl::Duration kFirstRest = absl::Seconds(1);
constexpr absl::Duration kLongestRest = absl::Minutes(1);

}  // namespace

void Membership::State::On(const ProgressReported& event, absl::Time now) {
  const Worker* worker = workers.Find(event.worker.id);
  if (worker != nullptr && verdict.has_value() && verdict->success) {
    return Answer(event.call, absl::OkStatus());
  }
  if (worker != nullptr && WasLast(event, *worker)) return Answer(event.call, absl::OkStatus());
  absl::Status status = CheckSpeaker(event.worker, worker);
  if (status.ok()) status = CheckMember(event.worker, *worker, event.epoch);
  if (status.ok() && epochs.broken.has_value()) {
    status = absl::FailedPreconditionError(
        absl::StrCat("world ", epochs.current.value(), " is broken: ", *epochs.broken));
  }
  Answer(event.call, status);
  if (!status.ok() || event.commit <= epochs.reported_commit) return;
  epochs.reported_commit = event.commit;
  epochs.committed_at = now - event.commit_age;
}

// Whether nobody goes on after the world that the worker was in: what it has committed there
// counts, though it is only now being written down.
bool Membership::State::WasLast(const ProgressReported& event, const Worker& worker) const {
  const bool has_ended = verdict.has_value() || (epochs.broken.has_value() && !SomeGoOn());
  return has_ended && !worker.life.gone() && CheckMember(event.worker, worker, event.epoch).ok();
}

// REQUIRES: it asks for the next world.
void Membership::State::Leave(const Worker& worker, const JoinRequested& event) {
  if (epochs.current == Epoch(0) || worker.last_world != epochs.current ||
      event.last_epoch != epochs.current)
    return;
  epochs.left.any = true;
  epochs.left.worked = epochs.left.worked || event.worked;
  epochs.left.lost_steps = std::max(epochs.left.lost_steps, event.lost_steps);
  epochs.left.lost_time = std::max(epochs.left.lost_time, event.lost_time);
  if (event.left_for.empty() || !epochs.left.cause.empty()) return;
  epochs.left.cause = phrases::OneLine(event.left_for);
  epochs.left.rank = worker.place.rank;
  epochs.left.host = HostOf(worker).slots.host;
}

// Whether the next world has to wait, so that they don't follow one another without a pause.
bool Membership::State::RestsAfterIdle(int in_a_row, absl::Time now) {
  if (epochs.idle_until == absl::InfinitePast()) {
    const int doublings = std::min(in_a_row - 2, 20);
    const absl::Duration rest = doublings < 0
                                    ? absl::ZeroDuration()
                                    : std::min(kLongestRest, kFirstRest * (1 << doublings));
    epochs.idle_until = now + rest;
    Note(Notice::Kind::kWorldIdle,
         absl::StrCat(epochs.IdleText(in_a_row), "; the next one follows ",
                      rest > absl::ZeroDuration() ? absl::StrCat("after ", text::DurationText(rest))
                                                  : "at once"));
  }
  return now < epochs.idle_until;
}

}  // namespace hvd::rendezvous::membership
