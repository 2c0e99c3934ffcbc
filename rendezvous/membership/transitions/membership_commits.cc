// Commits in the memory of agents. A commit belongs to its host: every worker there can take it
// over, whichever slot it was made in, and agents of other hosts can copy it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

void Membership::State::On(const CommitLeft& event, absl::Time) {
  Host* const host = hosts.Find(event.host);
  if (host != nullptr) host->commit = event.commit;
}

void Membership::State::On(const CommitKept& event, absl::Time) {
  Host* const host = hosts.Find(event.host);
  if (host == nullptr) return;
  host->commit = event.commit;
  // Without a source, its agent has been asked to drop its copy.
  if (verdict.has_value() || host->copies_from.empty()) return;
  if (!event.failure.empty()) return NoteUncopied(host, event.failure);
  host->no_copies_from.clear();
  if (std::exchange(host->has_copy, true)) return;
  Note(Notice::Kind::kCommitsKept,
       absl::StrCat("host ", host->slots.host, " keeps copies of the commits, beginning with ",
                    CommitNumber(event.commit)),
       nullptr, host);
}

// The host can't copy the commits of another one: from now on any other host is asked first.
void Membership::State::NoteUncopied(Host* host, const std::string& failure) {
  host->no_copies_from = host->copies_from;
  const auto source = std::find_if(hosts.begin(), hosts.end(), [host](const Host& other) {
    return other.commit_address == host->copies_from;
  });
  if (source == hosts.end()) return;
  Note(Notice::Kind::kCommitsNotKept,
       absl::StrCat("host ", host->slots.host, " can't copy the commits of host ",
                    source->slots.host, ": ", phrases::OneLine(failure)),
       nullptr, host);
}

// ---- The commit with which the next world begins

// The host whose agent has the newest commit of all; null if no agent has any.
const Host* Membership::State::HolderOfNewest() const {
  const Host* holder = nullptr;
  for (const Host& host : hosts) {
    if (!host.IsThere() || host.commit == 0) continue;
    if (holder == nullptr || host.commit > holder->commit) holder = &host;
  }
  return holder;
}

// The newest commit with which a world can begin if this worker is in it.
uint64_t Membership::State::Restorable(const Worker& worker) const {
  return std::max(worker.commit, HostOf(worker).commit);
}

uint64_t Membership::State::Restorable(const std::vector<Worker*>& members) const {
  uint64_t newest = 0;
  for (const Worker* worker : members) newest = std::max(newest, Restorable(*worker));
  return newest;
}

// The host that has a newer commit than a world of these members could begin with; else null. The
// world waits until one of its agent's workers asks, or another agent has taken a copy: SteerCopies
// sees to that. If neither has happened within kCopyPatience, the commit is out of reach.
const Host* Membership::State::HolderAwaited(const std::vector<Worker*>& members,
                                             absl::Time now) const {
  const Host* const holder = HolderOfNewest();
  if (holder == nullptr || holder->commit <= Restorable(members)) return nullptr;
  return now < epochs.quorum_since + kCopyPatience ? holder : nullptr;
}

// Whether a worker that leaves and was in no world has a newer commit than these members could
// begin with, from its slot. It was released; its agent says at its end what it has.
bool Membership::State::AwaitsLeaver(const std::vector<Worker*>& members, absl::Time now) const {
  const uint64_t newest = Restorable(members);
  for (const Worker& worker : workers) {
    if (worker.life.gone() || !IsLeaving(worker) || worker.life.member()) continue;
    if (worker.commit > newest && now < worker.ends_by) return true;
  }
  return false;
}

// The workers that ask for the next world and stay in the job.
std::vector<Worker*> Membership::State::Candidates() {
  std::vector<Worker*> candidates;
  for (Worker& worker : workers) {
    const bool takes_part = IsSurvivor(worker) || IsReadyNewcomer(worker);
    if (takes_part && worker.join.has_value() && !IsLeaving(worker)) candidates.push_back(&worker);
  }
  return candidates;
}

// The newest commit with which the workers that ask can begin.
uint64_t Membership::State::RestorableByAsking() const {
  uint64_t newest = 0;
  for (const Worker& worker : workers) {
    if (worker.join.has_value()) newest = std::max(newest, Restorable(worker));
  }
  return newest;
}

// If an agent has a newer commit than all members: gives it to the members on its host, one of
// which becomes rank 0 and loads it before it gives the others its state. Returns whether it has.
bool Membership::State::CountCopies(const std::vector<Worker*>& members) {
  uint64_t newest = 0;
  for (const Worker* worker : members) newest = std::max(newest, worker->commit);
  const uint64_t held = Restorable(members);
  if (held <= newest) return false;
  for (Worker* worker : members) {
    if (HostOf(*worker).commit == held) worker->commit = held;
  }
  return true;
}

// "waiting for commit 51, which only host b has (host a takes a copy)"
std::string Membership::State::MissingCommitText(const Host& holder) const {
  std::string how = "none of its workers is ready";
  for (const Host& host : hosts) {
    if (host.copies_from != holder.commit_address || host.copies_from.empty()) continue;
    how = absl::StrCat("host ", host.slots.host, " takes a copy");
  }
  return absl::StrCat("waiting for commit ", CommitNumber(holder.commit), ", which only host ",
                      holder.slots.host, " has (", how, ")");
}

// ---- Copies: while the newest commit lies on one machine only, a host of another one keeps copies
// of it, so that the loss of either costs at most the commits since the newest copy.

// Chooses the keeper of copies and notifies the agents.
void Membership::State::SteerCopies() {
  const Copying wanted = WantedCopy();
  if (wanted.keeper == nullptr && !SomeSurvive()) return;
  for (Host& host : hosts) {
    if (!host.agent.has_value() || host.ended || IsNotReplacedYet(host, wanted)) continue;
    TellToKeep(&host, &host == wanted.keeper ? wanted.holder : nullptr);
  }
}

// Whether the host keeps the only copies, and another one is to take over but has no copy yet.
bool Membership::State::IsNotReplacedYet(const Host& host, const Copying& wanted) const {
  const auto& [holder, next] = wanted;
  if (next == nullptr || next == &host || !host.has_copy) return false;
  const bool has_copy = next->has_copy && next->copies_from == holder->commit_address;
  return host.copies_from == holder->commit_address && !has_copy;
}

bool Membership::State::SomeSurvive() const {
  return std::any_of(workers.begin(), workers.end(),
                     [this](const Worker& worker) { return IsSurvivor(worker); });
}

// Who should have a copy of whose commits, by urgency: a world that can't begin with the newest
// commit, a host that leaves with a commit that only it has, a world on one machine, no world and
// one host with the newest commit.
Membership::State::Copying Membership::State::WantedCopy() {
  const Host* const newest = HolderOfNewest();
  if (newest != nullptr && ComingTogether()) {
    const std::vector<Worker*> candidates = Candidates();
    if (!candidates.empty() && Restorable(candidates) < newest->commit) {
      return {newest, KeeperAmong(*newest, candidates)};
    }
  }
  for (const Host& host : hosts) {
    if (!host.drain.has_value() || host.ended || !host.agent.has_value()) continue;
    if (host.live > 0 || HasElsewhere(host)) continue;
    if (Host* const keeper = Keeper(host, hosts.Machines()); keeper != nullptr)
      return {&host, keeper};
    if (Host* const keeper = Keeper(host, {}); keeper != nullptr) return {&host, keeper};
  }
  if (const Host* const lone = LoneHolder(); lone != nullptr)
    return {lone, Keeper(*lone, hosts.Machines())};
  // Nobody trains: its agent could be lost before the next workers ask.
  if (newest == nullptr || SomeSurvive() || HasElsewhere(*newest)) return {};
  Host* const elsewhere = Keeper(*newest, hosts.Machines());
  return {newest, elsewhere != nullptr ? elsewhere : Keeper(*newest, {})};
}

// If all survivors are on one machine, a host of that machine; else null.
const Host* Membership::State::LoneHolder() const {
  const std::vector<int> machines = hosts.Machines();
  const Worker* first = nullptr;
  for (const Worker& worker : workers) {
    if (!IsSurvivor(worker)) continue;
    if (first == nullptr) first = &worker;
    if (machines[worker.host] != machines[first->host]) return nullptr;
  }
  return first == nullptr ? nullptr : &HostOf(*first);
}

// How well the host can keep copies of `holder`'s commits: best the present keeper, then one with
// workers, then any; last one that has tried in vain.
int Membership::State::RankAsKeeper(const Host& host, const Host& holder) {
  if (host.no_copies_from == holder.commit_address) return 0;
  if (host.copies_from == holder.commit_address) return 3;
  return host.live > 0 ? 2 : 1;
}

// The host that should keep copies of `holder`'s commits: see RankAsKeeper. If `machines` are
// given, one on another machine. Null if there is none.
Host* Membership::State::Keeper(const Host& holder, const std::vector<int>& machines) {
  if (holder.commit_address.empty() || !holder.agent.has_value()) return nullptr;
  Host* best = nullptr;
  for (Host& host : hosts) {
    const bool stays = host.agent.has_value() && !host.ended && !host.drain.has_value();
    if (!stays || host.held || host.commit_address.empty() || &host == &holder) continue;
    const bool same =
        !machines.empty() && machines[hosts.IndexOf(host)] == machines[hosts.IndexOf(holder)];
    if (same) continue;
    if (best == nullptr || RankAsKeeper(host, holder) > RankAsKeeper(*best, holder)) best = &host;
  }
  return best;
}

// A host of one of the workers that can take a copy from `holder`: see RankAsKeeper.
Host* Membership::State::KeeperAmong(const Host& holder, const std::vector<Worker*>& candidates) {
  if (holder.commit_address.empty() || !holder.agent.has_value()) return nullptr;
  Host* best = nullptr;
  for (const Worker* worker : candidates) {
    Host& host = hosts[worker->host];
    if (!host.agent.has_value() || host.ended || host.commit_address.empty()) continue;
    if (best == nullptr || RankAsKeeper(host, holder) > RankAsKeeper(*best, holder)) best = &host;
  }
  return best;
}

// The host whose commit the next world needs, if nobody can bring it: no worker is there, and no
// other host can take a copy, or each has tried in vain. Else null.
const Host* Membership::State::HolderWithoutWorker(absl::Time now) {
  if (epochs.quorum_since == absl::InfiniteFuture()) return nullptr;
  const std::vector<Worker*> candidates = Candidates();
  const Host* const holder = HolderAwaited(candidates, now);
  if (holder == nullptr) return nullptr;
  const Host* const keeper = KeeperAmong(*holder, candidates);
  if (keeper != nullptr && keeper->no_copies_from != holder->commit_address) return nullptr;
  const bool has_worker = std::any_of(workers.begin(), workers.end(), [&](const Worker& worker) {
    return IsLive(worker) && &HostOf(worker) == holder;
  });
  return has_worker ? nullptr : holder;
}

// Whether the newest commit of this host, or a newer one, would remain if the host went.
bool Membership::State::HasElsewhere(const Host& host) const {
  const uint64_t commit = host.commit;
  if (commit == 0) return true;
  const auto stays = [&host](const Host& other) {
    return &other != &host && other.agent.has_value() && !other.ended && !other.drain.has_value();
  };
  for (const Host& other : hosts) {
    if (stays(other) && other.commit >= commit) return true;
  }
  const bool is_old = epochs.whole() && CommittedInWorld();
  return std::any_of(workers.begin(), workers.end(), [&](const Worker& worker) {
    if (!stays(HostOf(worker)) || !worker.life.running()) return false;
    return worker.commit >= commit || (is_old && IsSurvivor(worker));
  });
}

// Whether a drained host without workers stays: it keeps the copies until another host has one; or
// it alone has a commit and another one can take it over. If no other one is there, it waits for
// one, unless a checkpoint has the commit.
bool Membership::State::MustGiveCommit(const Host& host, absl::Time now) {
  if (now >= host.drain->deadline) return false;
  if (!IsFinishing() && IsNotReplacedYet(host, WantedCopy())) return true;
  if (HasElsewhere(host)) return false;
  return !IsFinishing() && (Keeper(host, {}) != nullptr || AloneHasCommit(host));
}

// Whether the newest commit of this drained host would be lost to a job that goes on if the host
// went, and a host that comes later could take it over. Of several drained hosts with that commit
// the one with most time stays.
bool Membership::State::AloneHasCommit(const Host& host) const {
  if (host.drain->ends_job || host.commit_address.empty()) return false;
  if (host.commit <= epochs.checkpoint.commit || HasElsewhere(host)) return false;
  const auto stays_for = [this](const Host& h) {
    return std::make_pair(h.drain->deadline, hosts.IndexOf(h));
  };
  return std::none_of(hosts.begin(), hosts.end(), [&](const Host& other) {
    const bool is_there = other.agent.has_value() && !other.ended && other.drain.has_value();
    return is_there && other.commit >= host.commit && !other.commit_address.empty() &&
           stays_for(other) > stays_for(host);
  });
}

// Whether the newest reported commit was made in this world, not in an earlier one.
bool Membership::State::CommittedInWorld() const {
  return epochs.reported_commit > epochs.formed_commit && epochs.committed_at > epochs.formed_at;
}

// Sends KeepCommits if the host's source of copies changes. Null `holder`: it drops its copy, but
// not before a world with members on a second machine has committed: until then those members do
// not have the state yet, and rank 0 may have to load it from the copy. Nor while the next world is
// awaited, which may begin with the copy. REQUIRES: its agent is attached.
void Membership::State::TellToKeep(Host* host, const Host* holder) {
  const std::string address = holder == nullptr ? "" : holder->commit_address;
  if (host->copies_from == address) return;
  const bool is_settled = epochs.whole() && !epochs.changing.has_value() && !ComingTogether();
  if (holder == nullptr && !(is_settled && CommittedInWorld())) return;
  host->copies_from = address;
  host->has_copy = host->has_copy && holder != nullptr;
  effects.push_back(KeepCommitsEffect{*host->agent, host->slots.host,
                                      holder == nullptr ? "" : holder->slots.host, address});
}

}  // namespace hvd::rendezvous::membership
