// The end of the old world, when it is certain: a lost host may only be cut off, and its workers
// train on until their agent has noticed. That has no effect while the newest world lacks a member.
// If the world may still be complete, it must have ended before another one begins.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/membership_state.h"

namespace hvd::rendezvous::membership {
namespace {

// The largest delay with which the other end of a connection notices the silence after this one.
constexpr absl::Duration kSilence = absl::Seconds(4);
// The time for a returned agent to kill the workers that it was asked to.
constexpr absl::Duration kKillTime = absl::Seconds(1);

}  // namespace

// Its agent kills it after it has tried to reach the daemon for the agreed time. REQUIRES: the
// agent was lost now.
void Membership::State::MarkUnreachable(Worker* worker, absl::Time now) {
  const bool trains = worker->life.member() && !worker->join.has_value();
  if (!trains) return;
  const absl::Time away_until = HostOf(*worker).away_until;
  const bool was_away = away_until != absl::InfinitePast();
  worker->may_train_until = (was_away ? away_until : now + spec.reattach_timeout) + kSilence;
}

// The agent of its workers has returned, or another one in its place.
void Membership::State::MarkReachable(const Host& host, absl::Time now) {
  for (Worker& worker : workers) {
    if (&HostOf(worker) != &host) continue;
    worker.may_train_until = std::min(worker.may_train_until, now + kKillTime);
  }
}

// When the newest world has surely ended, if all of its members were cut off while they trained;
// InfinitePast: some member is known to have left it.
absl::Time Membership::State::OldWorldEnds() const {
  absl::Time end = absl::InfinitePast();
  for (const Worker& worker : workers) {
    if (epochs.current == Epoch(0) || worker.last_world != epochs.current) continue;
    if (worker.may_train_until == absl::InfinitePast()) return absl::InfinitePast();
    end = std::max(end, worker.may_train_until);
  }
  return end;
}

void Membership::State::ReportCutOff(absl::Time now) {
  const absl::Time end = OldWorldEnds();
  if (end <= now) return;
  Note(Notice::Kind::kWaiting,
       absl::StrCat("waiting for ", text::DurationText(end - now),
                    ": nobody of the last world is known to have ended, and it must not train on "
                    "beside the next"));
}

}  // namespace hvd::rendezvous::membership
