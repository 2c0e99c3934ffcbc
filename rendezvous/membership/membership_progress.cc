// How far the job is, what failures have cost it, and what becomes of worlds that end before they
// have done anything although nobody failed.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/membership_state.h"
#include "rendezvous/membership/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// Before the next world, after the second idle one in a row; doubles.
constexpr absl::Duration kFirstRest = absl::Seconds(1);
constexpr absl::Duration kLongestRest = absl::Minutes(1);

}  // namespace

void Membership::State::On(const ProgressReported& event, absl::Time now) {
  const Worker* worker = Find(event.worker.id);
  if (worker != nullptr && verdict.has_value() && verdict->success) {
    return Answer(event.call, absl::OkStatus());
  }
  if (worker != nullptr && WasLast(event, *worker)) return Answer(event.call, absl::OkStatus());
  absl::Status status = CheckSpeaker(event.worker, worker);
  if (status.ok()) status = CheckMember(event.worker, *worker, event.epoch);
  if (status.ok() && broken.has_value()) {
    status = absl::FailedPreconditionError(
        absl::StrCat("world ", epoch.value(), " is broken: ", *broken));
  }
  Answer(event.call, status);
  if (!status.ok() || event.commit <= reported_commit) return;
  reported_commit = event.commit;
  committed_at = now - event.commit_age;
}

// Whether nobody goes on after the world that the worker was in: what it has committed there
// counts, though it is only now being written down.
bool Membership::State::WasLast(const ProgressReported& event, const Worker& worker) const {
  const bool has_ended = verdict.has_value() || (broken.has_value() && !SomeGoOn());
  return has_ended && !worker.life.gone() && CheckMember(event.worker, worker, event.epoch).ok();
}

// REQUIRES: it asks for the next world.
void Membership::State::Leave(const Worker& worker, const JoinRequested& event) {
  if (epoch == Epoch(0) || worker.last_world != epoch || event.last_epoch != epoch) return;
  left.any = true;
  left.worked = left.worked || event.worked;
  left.lost_steps = std::max(left.lost_steps, event.lost_steps);
  left.lost_time = std::max(left.lost_time, event.lost_time);
  if (event.left_for.empty() || !left.cause.empty()) return;
  left.cause = OneLine(event.left_for);
  left.rank = worker.place.rank;
  left.host = HostOf(worker).slots.host;
}

// Nobody had to fail for it: the members themselves could do nothing with it.
bool Membership::State::EndedIdle(uint64_t commit) const {
  return broken.has_value() && !failed_world && !left.worked && !left.cause.empty() &&
         commit <= formed_commit;
}

// Whether the next world has to wait, so that they don't follow one another without a pause.
bool Membership::State::RestsAfterIdle(int in_a_row, absl::Time now) {
  if (idle_until == absl::InfinitePast()) {
    const int doublings = std::min(in_a_row - 2, 20);
    const absl::Duration rest = doublings < 0
                                    ? absl::ZeroDuration()
                                    : std::min(kLongestRest, kFirstRest * (1 << doublings));
    idle_until = now + rest;
    Note(Notice::Kind::kWorldIdle,
         absl::StrCat(IdleText(in_a_row), "; the next one follows ",
                      rest > absl::ZeroDuration() ? absl::StrCat("after ", text::DurationText(rest))
                                                  : "at once"));
  }
  return now < idle_until;
}

std::string Membership::State::IdleText(int in_a_row) const {
  const std::string which =
      in_a_row > 1
          ? absl::StrCat(", as ", in_a_row - 1, in_a_row > 2 ? " worlds" : " world", " before it")
          : "";
  return absl::StrCat("world ", epoch.value(), " ended before an operation was completed in it",
                      which, ": ", RankOnHost(left.rank, left.host), ": ", left.cause);
}

Verdict Membership::State::IdleVerdict() const {
  Verdict idle;
  idle.exit_code = 1;
  idle.rank = left.rank;
  idle.host = left.host;
  idle.exception = left.cause;
  idle.exit_meaning = "left its world by itself";
  idle.summary = absl::StrCat(RankOnHost(left.rank, left.host), ": ", left.cause);
  return idle;
}

// A broken world is followed by one that goes on from `commit`.
void Membership::State::CountLoss(uint64_t commit) {
  if (epoch == Epoch(0) || !broken.has_value()) {
    left = Leaving();
    return;
  }
  if (!left.any) {  // nobody is left to say
    const bool known = reported_commit > 0 && reported_commit <= commit;
    left.lost_time = std::max(absl::ZeroDuration(),
                              broken_at - std::max(formed_at, known ? committed_at : formed_at));
  }
  lost_steps += left.lost_steps;
  lost_time += left.lost_time;
}

}  // namespace hvd::rendezvous::membership
