// Hosts that are out of reach: of the daemon, or of each other.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/decisions/rests.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// The longest time by which the agent may notice the broken connection later than the daemon.
constexpr absl::Duration kSilence = absl::Seconds(4);
// The time for an agent that has returned to kill the workers that the daemon makes it stop.
constexpr absl::Duration kKillTime = absl::Seconds(1);

// After a rest, the ways are tried again, which costs all members a world that does not train.
constexpr absl::Duration kFirstRest = absl::Seconds(30);
constexpr absl::Duration kLongestRest = absl::Hours(1);
constexpr int kMostDoublings = 7;
// Worlds in a row in which nothing could be done, after which what is known of ways is doubtful.
constexpr int kDoubtAfter = 6;
// That are remembered: an outage of the whole network closes all of them.
constexpr size_t kMostWays = 256;

void Add(const Way& way, std::vector<Way>* ways) {
  const bool is_new = std::find(ways->begin(), ways->end(), way) == ways->end();
  if (is_new && ways->size() < kMostWays) ways->push_back(way);
}

}  // namespace

// ---- Prevention of split brain. A lost host may only be cut off from the daemon: its workers
// continue to train until their agent notices and kills them. That is harmless if at least one
// member is known to have left the world, since the others can't complete a collective without it.
// If all members were cut off, the whole world may still train, so the next world must not form
// before the old one has certainly ended.

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

void Membership::State::ReportCutOff(absl::Time now) {
  const absl::Time end = standing.OldWorldEnds();
  if (end <= now) return;
  Note(Notice::Kind::kWaiting,
       absl::StrCat("waiting for ", text::DurationText(end - now),
                    ": all members of the last world were cut off, and may train until then"));
}

// ---- Ways between two hosts that are closed although the daemon reaches both: see Rests.

// Records which host a member did not reach. REQUIRES: `event` is its request for the world that
// follows the newest one.
void Membership::State::NoteUnreached(const Worker& worker, const JoinRequested& event) {
  const auto size = static_cast<int>(epochs.world->members.size());
  const int rank = event.unreached.value_or(-1);
  if (!elastic() || rank < 0 || rank >= size) return;
  const std::string& own = HostOf(worker).slots.host;
  const std::string& other = epochs.world->members[rank].host;
  if (own != other) Add(std::minmax(own, other), &epochs.left.closed);
}

// Lets hosts rest if they must: see Rests. `commit` is the newest one. Returns whether one rests
// from now on.
bool Membership::State::RestUnreachedHosts(uint64_t commit, absl::Time now) {
  const decisions::Rests rests(standing, spec.min_workers);
  bool some_rest = false;
  while (const Host* const next = rests.Next(commit)) {
    LetRest(&hosts[hosts.IndexOf(*next)], rests.UnreachedBy(*next), now);
    EndRests(now);
    some_rest = true;
  }
  return some_rest;
}

void Membership::State::LetRest(Host* host, const std::vector<std::string>& unreached,
                                absl::Time now) {
  const absl::Duration rest =
      std::min(kLongestRest, kFirstRest * (1 << std::min(host->rests, kMostDoublings)));
  const std::string costs = commits.OthersAreAsNew(*host) ? "" : "; its newest commit is given up";
  host->rests_until = now + rest;
  host->rests_from = unreached.front();
  ++host->rests;
  Note(Notice::Kind::kSlotCooling,
       absl::StrCat("host ", host->slots.host, " rests for ", text::DurationText(rest), ": it and ",
                    phrases::Hosts(unreached), " do not reach each other", costs),
       nullptr, host);
}

// Before the next world forms, whose members can restore `commit`: forgets the closed ways that
// were open in the newest world, which has made that commit, and remembers those that were not.
void Membership::State::RememberWays(uint64_t commit) {
  if (commit > epochs.formed_commit) {
    std::set<std::string> met;
    for (const WorldMember& member : epochs.world->members) met.insert(member.host);
    for (Host& host : hosts) {
      const bool is_gone = hosts.Find(host.rests_from) == nullptr;
      const bool meets = is_gone || met.count(host.rests_from) > 0;
      if (met.count(host.slots.host) > 0 && meets) host.rests = 0;
    }
    const auto is_open = [&met](const Way& way) {
      return met.count(way.first) > 0 && met.count(way.second) > 0;
    };
    auto& ways = epochs.closed_ways;
    ways.erase(std::remove_if(ways.begin(), ways.end(), is_open), ways.end());
  }
  if (epochs.LostMember()) return;
  // What was not seen again may have changed since: two hosts that rest in turns never meet.
  const bool is_idle = epochs.EndedIdle(commit);
  if (is_idle && epochs.IdleInARow() % kDoubtAfter == 0) epochs.closed_ways.clear();
  for (const Way& way : epochs.left.closed) Add(way, &epochs.closed_ways);
}

// Ends the rests that are over. The next one of such a host begins after a world in which its ways
// were tried.
void Membership::State::EndRests(absl::Time now) {
  const decisions::Rests rests(standing, spec.min_workers);
  for (Host& host : hosts) {
    if (!host.IsResting() || !rests.IsOver(host, now)) continue;
    host.rests_until = absl::InfinitePast();
    auto& closed = epochs.left.closed;
    const auto is_own = [&host](const Way& way) {
      return way.first == host.slots.host || way.second == host.slots.host;
    };
    closed.erase(std::remove_if(closed.begin(), closed.end(), is_own), closed.end());
  }
}

}  // namespace hvd::rendezvous::membership
