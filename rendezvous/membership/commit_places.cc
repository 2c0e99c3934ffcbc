#include "rendezvous/membership/commit_places.h"

#include <algorithm>
#include <utility>

#include "base/ids.h"

namespace hvd::rendezvous::membership {

bool CommitPlaces::HasAny() const {
  return epochs().newest_commit > 0 || epochs().reported_commit > 0 ||
         std::any_of(hosts().begin(), hosts().end(),
                     [](const Host& host) { return host.commit > 0; });
}

const Host* CommitPlaces::HolderOfNewest() const {
  const Host* holder = nullptr;
  for (const Host& host : hosts()) {
    if (!host.IsThere() || host.commit == 0) continue;
    if (holder == nullptr || host.commit > holder->commit) holder = &host;
  }
  return holder;
}

uint64_t CommitPlaces::Restorable(const Worker& worker) const {
  return std::max(worker.commit, standing_.HostOf(worker).commit);
}

uint64_t CommitPlaces::Restorable(absl::Span<const Worker* const> members) const {
  uint64_t newest = 0;
  for (const Worker* worker : members) newest = std::max(newest, Restorable(*worker));
  return newest;
}

uint64_t CommitPlaces::RestorableByAsking() const {
  uint64_t newest = 0;
  for (const Worker& worker : workers()) {
    if (worker.join.has_value()) newest = std::max(newest, Restorable(worker));
  }
  return newest;
}

std::vector<const Worker*> CommitPlaces::Candidates() const {
  std::vector<const Worker*> candidates;
  for (const Worker& worker : workers()) {
    const bool takes_part = worker.IsSurvivor() || standing_.IsReadyNewcomer(worker);
    if (takes_part && worker.join.has_value() && !standing_.IsLeaving(worker))
      candidates.push_back(&worker);
  }
  return candidates;
}

const Host* CommitPlaces::HolderAbove(absl::Span<const Worker* const> members) const {
  const Host* holder = nullptr;
  uint64_t newest = Restorable(members);
  for (const Host& host : hosts()) {
    if (!host.IsThere() || host.commit <= newest || IsGivenUp(host)) continue;
    holder = &host;
    newest = host.commit;
  }
  return holder;
}

const Host* CommitPlaces::HolderAwaited(absl::Span<const Worker* const> members,
                                        absl::Time now) const {
  const Host* const holder = HolderAbove(members);
  return holder != nullptr && now < epochs().quorum_since + kCopyPatience ? holder : nullptr;
}

bool CommitPlaces::AwaitsLeaver(absl::Span<const Worker* const> members, absl::Time now) const {
  const uint64_t newest = Restorable(members);
  for (const Worker& worker : workers()) {
    // It leaves although its host is used again, such as after a rest.
    const bool leaves = standing_.IsLeaving(worker) || worker.life.leaving();
    if (worker.life.gone() || !leaves || worker.life.member()) continue;
    if (IsGivenUp(standing_.HostOf(worker))) continue;
    if (worker.commit > newest && now < worker.ends_by) return true;
  }
  return false;
}

uint64_t CommitPlaces::NewestOn(const Host& host) const {
  uint64_t newest = host.commit;
  for (const Worker& worker : workers()) {
    const bool is_there = !worker.life.gone() && &standing_.HostOf(worker) == &host;
    if (is_there) newest = std::max(newest, worker.commit);
  }
  return newest;
}

bool CommitPlaces::HasSeveralAlone(const Host& host) const {
  const uint64_t newest = CommitNumber(NewestOn(host));
  return newest > 1 && std::none_of(hosts().begin(), hosts().end(), [&](const Host& other) {
           return &other != &host && other.TakesPart() &&
                  CommitNumber(NewestOn(other)) + 1 >= newest;
         });
}

bool CommitPlaces::OthersAreAsNew(const Host& host) const {
  const uint64_t newest = NewestOn(host);
  return std::any_of(hosts().begin(), hosts().end(), [&](const Host& other) {
    return &other != &host && other.TakesPart() && NewestOn(other) >= newest;
  });
}

bool CommitPlaces::CommittedInWorld() const {
  return epochs().reported_commit > epochs().formed_commit &&
         epochs().committed_at > epochs().formed_at;
}

uint64_t CommitPlaces::Unwritten() const {
  const uint64_t left = LeftByWriter();
  return CanRestore(left) ? left : 0;
}

uint64_t CommitPlaces::LeftByWriter() const {
  if (epochs().checkpoint.place.empty() || epochs().whole()) return 0;
  uint64_t newest = 0;
  for (const Host& host : hosts()) {
    if (host.IsThere()) newest = std::max(newest, host.commit);
  }
  for (const Worker& worker : workers()) {
    if (worker.life.gone()) continue;
    const bool runs = worker.life.running() && !worker.life.finished();
    const bool leads = worker.last_world == epochs().current && worker.place.rank == 0;
    // If the world broke before its first commit, the newest one may be of another rank 0.
    const bool writes = !epochs().broken.has_value() || worker.commit > epochs().formed_commit;
    if (leads && writes && (runs || worker.life.released())) return 0;
    newest = std::max(newest, worker.commit);
  }
  return newest > epochs().checkpoint.commit ? newest : 0;
}

bool CommitPlaces::CanRestore(uint64_t commit) const {
  return std::any_of(workers().begin(), workers().end(), [&](const Worker& worker) {
    const bool runs = !worker.life.gone() && worker.life.running() && !worker.life.finished();
    return runs && Restorable(worker) >= commit;
  });
}

std::vector<const Host*> CommitPlaces::HoldersOfUnwritten() const {
  // An agent says what a member has left when it has ended.
  const bool some_end = std::any_of(workers().begin(), workers().end(), [this](const Worker& w) {
    return !w.life.gone() && w.last_world == epochs().current;
  });
  const uint64_t left = LeftByWriter();
  std::vector<const Host*> holders;
  if (some_end || left == 0 || CanRestore(left)) return holders;
  for (const Host& host : hosts()) {
    if (host.agent.has_value() && MayHaveToBeWritten(host) && host.commit == left)
      holders.push_back(&host);
  }
  return holders;
}

bool CommitPlaces::MayHaveToBeWritten(const Host& host) const {
  const Checkpoint& written = epochs().checkpoint;
  // A write that has failed would fail again.
  if (written.place.empty() || !written.failure.empty() || host.ended) return false;
  const Host* const holder = HolderOfNewest();
  return host.commit > written.commit && host.commit == holder->commit;
}

CommitsElsewhere::CommitsElsewhere(const CommitPlaces& places) : places_(places) {
  const auto stays = [](const Host& host) {
    return host.agent.has_value() && !host.ended && !host.drain.has_value();
  };
  for (const Host& host : places_.hosts()) {
    if (stays(host)) Count({&host, host.commit});
  }
  // Then each member has made the newest commit, whatever it has reported.
  const bool is_old = places_.epochs().whole() && places_.CommittedInWorld();
  for (const Worker& worker : places_.workers()) {
    const Host& host = places_.standing_.HostOf(worker);
    if (!stays(host) || !worker.life.running()) continue;
    Count({&host, is_old && worker.IsSurvivor() ? UINT64_MAX : worker.commit});
  }
}

void CommitsElsewhere::Count(const Kept& kept) {
  if (kept.host == newest_.host) {
    newest_.commit = std::max(newest_.commit, kept.commit);
  } else if (newest_.host == nullptr || kept.commit > newest_.commit) {
    next_ = std::exchange(newest_, kept);
  } else if (next_.host == nullptr || kept.commit > next_.commit) {
    next_ = kept;
  }
}

bool CommitsElsewhere::Has(const Host& host) const {
  if (host.commit == 0) return true;
  const Kept& other = newest_.host == &host ? next_ : newest_;
  return other.host != nullptr && other.commit >= host.commit;
}

bool CommitsElsewhere::IsAlone(const Host& host) const {
  if (host.drain->ends_job || host.commit_address.empty()) return false;
  if (host.commit <= places_.epochs().checkpoint.commit || Has(host)) return false;
  const Hosts& hosts = places_.hosts();
  const auto stays_for = [&hosts](const Host& h) {
    return std::make_pair(h.drain->deadline, hosts.IndexOf(h));
  };
  // From the end: of hosts that leave together the last one has most time.
  return std::none_of(hosts.rbegin(), hosts.rend(), [&](const Host& other) {
    const bool is_there = other.agent.has_value() && !other.ended && other.drain.has_value();
    return is_there && other.commit >= host.commit && !other.commit_address.empty() &&
           stays_for(other) > stays_for(host);
  });
}

}  // namespace hvd::rendezvous::membership
