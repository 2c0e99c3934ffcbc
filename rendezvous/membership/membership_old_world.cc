// Prevention of split brain. A lost host may only be cut off from the daemon: its workers continue
// to train until their agent notices and kills them. That is harmless if at least one member is
// known to have left the world, since the others can't complete a collective without it. If all
// members were cut off, the whole world may still train, so the next world must not form before the
// old one has certainly ended.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/membership_state.h"

namespace hvd::rendezvous::membership {
namespace {

// The longest time by which the agent may notice the broken connection later than the daemon.
constexpr absl::Duration kSilence = absl::Seconds(4);
// The time for an agent that has returned to kill the workers that the daemon makes it stop.
constexpr absl::Duration kKillTime = absl::Seconds(1);

}  // namespace

// Records until when the worker may train. Its agent kills it after trying to reach the daemon for
// reattach_timeout, counted from when the agent noticed the loss, which may be kSilence after the
// daemon. REQUIRES: the agent was just lost.
void Membership::State::MarkUnreachable(Worker* worker, absl::Time now) {
  // One that was stopped may not have heard of it.
  const bool in_world =
      worker->life.member() || (worker->stopped_in_world && worker->last_world == epochs.current);
  const bool trains = in_world && !worker->join.has_value();
  if (!trains) return;
  const absl::Time away_until = HostOf(*worker).away_until;
  const bool was_away = away_until != absl::InfinitePast();
  worker->may_train_until = (was_away ? away_until : now + spec.reattach_timeout) + kSilence;
}

// Shortens the wait: the host's agent, or another one in its place, is attached and kills the old
// workers.
void Membership::State::MarkReachable(const Host& host, absl::Time now) {
  for (Worker& worker : workers) {
    if (&HostOf(worker) != &host) continue;
    worker.may_train_until = std::min(worker.may_train_until, now + kKillTime);
  }
}

// The time from which the newest world has certainly ended: the latest may_train_until of its
// members. InfinitePast if some member is known to have left it.
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
                    ": all members of the last world were cut off, and may train until then"));
}

}  // namespace hvd::rendezvous::membership
