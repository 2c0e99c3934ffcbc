// Hosts that are lost may only be cut off, and their workers train on until their agent has
// noticed. That is of no consequence while the newest world lacks a member; if it may still be
// complete, it must have ended before another one begins.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/membership_state.h"

namespace hvd::rendezvous::membership {
namespace {

// The most that the other end of a connection notices its silence later than this one does.
constexpr absl::Duration kSilence = absl::Seconds(4);
// For an agent that is there again to kill whom it was told to.
constexpr absl::Duration kKillTime = absl::Seconds(1);

}  // namespace

// Its agent kills it once it has looked for the daemon for as long as it was told to. REQUIRES: the
// agent was lost now.
void Membership::State::MarkUnreachable(Worker* worker, absl::Time now) {
  const bool trains = worker->life.member() && !worker->join.has_value();
  if (!trains) return;
  const absl::Time away_until = HostOf(*worker).away_until;
  const bool was_away = away_until != absl::InfinitePast();
  worker->may_train_until = (was_away ? away_until : now + spec.reattach_timeout) + kSilence;
}

// The agent of its workers is there again, or another one in its place.
void Membership::State::MarkReachable(const Host& host, absl::Time now) {
  for (Worker& worker : workers) {
    if (&HostOf(worker) != &host) continue;
    worker.may_train_until = std::min(worker.may_train_until, now + kKillTime);
  }
}

// When the newest world has surely ended, if all of its members went out of sight while they
// trained; InfinitePast: somebody is known to have left it.
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
