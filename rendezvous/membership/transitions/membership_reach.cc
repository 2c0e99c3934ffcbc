// Hosts that are out of reach: of the daemon, or of each other.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
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
// That are remembered: an outage of the whole network closes all of them.
constexpr size_t kMostWays = 256;

bool Contains(const std::vector<Way>& ways, const Way& way) {
  return std::find(ways.begin(), ways.end(), way) != ways.end();
}

void Add(const Way& way, std::vector<Way>* ways) {
  if (!Contains(*ways, way) && ways->size() < kMostWays) ways->push_back(way);
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

// ---- Ways between two hosts that are closed although the daemon reaches both: by a firewall, a
// broken cable, a switch that drops large packets. No world with members on both can train, so one
// of the two rests while the others go on without it.

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

// Whether the newest world has lost a member or a host, which then was the reason why others did
// not reach it.
bool Membership::State::LostMember() const { return epochs.failed_world || epochs.lost_hosts; }

// Whether one of the two hosts rests already.
bool Membership::State::IsAvoided(const Way& way) {
  const Host* const first = hosts.Find(way.first);
  const Host* const second = hosts.Find(way.second);
  return (first != nullptr && first->IsResting()) || (second != nullptr && second->IsResting());
}

// Lets a host rest if a way to it was closed in two worlds in a row, the second of which has not
// made `commit`, the newest one, and there are enough slots without it. Of the hosts at closed ways
// that is the one at most of them; then one whose commit others have, too; then the one with fewest
// workers. Returns whether a host rests now.
bool Membership::State::RestUnreachedHost(uint64_t commit, absl::Time now) {
  // A world that has made a commit had all its ways open for a time.
  if (LostMember() || commit > epochs.formed_commit) return false;
  std::map<std::string, std::vector<std::string>> unreached;  // hosts by host
  for (const Way& way : epochs.left.closed) {
    if (!Contains(epochs.closed_ways, way) || IsAvoided(way)) continue;
    unreached[way.first].push_back(way.second);
    unreached[way.second].push_back(way.first);
  }
  const auto order = [&](const Host& host) {
    return std::make_tuple(unreached[host.slots.host].size(), commits.OthersAreAsNew(host),
                           -host.live, hosts.IndexOf(host));
  };
  Host* resting = nullptr;
  for (Host& host : hosts) {
    if (unreached.count(host.slots.host) == 0 || !host.TakesPart() || !CanDoWithout(host)) continue;
    if (resting == nullptr || order(host) > order(*resting)) resting = &host;
  }
  if (resting == nullptr) return false;
  const std::string& name = resting->slots.host;
  const absl::Duration rest =
      std::min(kLongestRest, kFirstRest * (1 << std::min(resting->rests, kMostDoublings)));
  resting->rests_until = now + rest;
  resting->rests_from = unreached[name].front();
  ++resting->rests;
  Note(Notice::Kind::kSlotCooling,
       absl::StrCat("host ", name, " rests for ", text::DurationText(rest), ": it and ",
                    phrases::Hosts(unreached[name]), " do not reach each other"),
       nullptr, resting);
  return true;
}

// Before the next world forms, whose members can restore `commit`: forgets the closed ways that
// were open in the newest world, which has made that commit, and remembers those that were not.
void Membership::State::RememberWays(uint64_t commit) {
  if (commit > epochs.formed_commit) {
    std::set<std::string> met;
    for (const WorldMember& member : epochs.world->members) met.insert(member.host);
    for (Host& host : hosts) {
      if (met.count(host.slots.host) > 0 && met.count(host.rests_from) > 0) host.rests = 0;
    }
    const auto is_open = [&met](const Way& way) {
      return met.count(way.first) > 0 && met.count(way.second) > 0;
    };
    auto& ways = epochs.closed_ways;
    ways.erase(std::remove_if(ways.begin(), ways.end(), is_open), ways.end());
  }
  if (LostMember()) return;
  for (const Way& way : epochs.left.closed) Add(way, &epochs.closed_ways);
}

// Ends the rests that are over, and those of hosts without which there would be too few slots.
void Membership::State::EndRests(absl::Time now) {
  for (Host& host : hosts) {
    if (host.IsResting() && (now >= host.rests_until || !CanDoWithout(host)))
      host.rests_until = absl::InfinitePast();
  }
}

// Whether the other hosts have enough slots for a world.
bool Membership::State::CanDoWithout(const Host& host) const {
  int64_t slots = 0;
  for (const Host& other : hosts) {
    if (&other != &host && other.TakesPart()) slots += other.slots.slots;
  }
  return slots >= spec.min_workers;
}

}  // namespace hvd::rendezvous::membership
