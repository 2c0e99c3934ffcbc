// Hosts attach and are lost; once all are there, the workers are started.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/membership_state.h"
#include "rendezvous/membership/phrases.h"

namespace hvd {

void Membership::State::On(const HostJoined& event, absl::Time now) {
  if (Reattach(event)) return;
  if (elastic() && !verdict.has_value()) return TakeInHost(event, now);
  const auto known = std::find_if(hosts.begin(), hosts.end(), [&event](const Host& host) {
    return host.slots.host == event.host.host;
  });
  const bool attached = known != hosts.end() && known->agent.has_value();
  if (attached && !verdict.has_value()) return;
  if (verdict.has_value() || started) {
    // There is no work for it: all places are taken.
    EndHost(event.agent, event.host.host, spec.failure_grace);
    return;
  }
  if (known != hosts.end()) {
    known->agent = event.agent;
  } else {
    Host host;
    host.slots = event.host;
    host.agent = event.agent;
    hosts.push_back(host);
  }
  StartWhenComplete();
}

// Nothing starts before everybody is there, so that a job that lacks a host has not run a single
// line of the user's.
void Membership::State::StartWhenComplete() {
  if (!MissingHosts().empty() || AttachedSlots() < spec.max_workers) return;
  started = true;
  std::vector<HostSlots> slots;
  for (const Host& host : hosts) slots.push_back(host.slots);
  for (const Placement& place : PlanSlots(slots, spec.max_workers)) {
    Worker worker;
    worker.id = WorkerId(static_cast<uint64_t>(place.rank) + 1);
    worker.place = place;
    worker.slot = place.local_rank;
    workers.push_back(worker);
    const Host& host = hosts[place.host];
    effects.push_back(StartWorkerEffect{*host.agent, host.slots.host, worker.id, place.rank,
                                        place.size, place.local_rank, place.local_size,
                                        place.cross_rank, place.cross_size, worker.slot});
  }
}

void Membership::State::On(const HostLost& event, absl::Time now) {
  const auto host = std::find_if(hosts.begin(), hosts.end(), [&event](const Host& h) {
    return h.slots.host == event.host && h.agent == event.agent;
  });
  if (host == hosts.end()) return;
  host->agent.reset();
  if (elastic() && !verdict.has_value()) return LoseElasticHost(&*host, event.reason, now);
  if (started) {
    LoseStartedHost(*host, event.reason, now);
  } else if (!host->expected) {
    hosts.erase(host);  // its slots may come from elsewhere
  } else if (!verdict.has_value()) {
    failures.HostLost(host->slots.host, event.reason);
    Judge(event.reason, now);
  }
}

// A host whose workers have all exited already takes nothing with it.
void Membership::State::LoseStartedHost(const Host& host, absl::string_view reason,
                                        absl::Time now) {
  const std::string why = absl::StrCat("host ", host.slots.host, " was lost: ", OneLine(reason));
  bool had_workers = false;
  for (Worker& worker : workers) {
    if (&HostOf(worker) != &host || worker.gone) continue;
    had_workers = true;
    worker.gone = true;
    worker.failed = true;
    EndCallsOf(&worker, absl::FailedPreconditionError(why));
  }
  if (verdict.has_value()) {
    FinishWhenAllGone();
  } else if (had_workers) {
    failures.HostLost(host.slots.host, reason);
    Judge(why, now);
  }
}

void Membership::State::On(const WorkerStarted& event, absl::Time now) {
  Worker* worker = Find(event.worker);
  if (worker != nullptr && !worker->gone) worker->pid = event.pid;
}

int Membership::State::AttachedSlots() const {
  int slots = 0;
  for (const Host& host : hosts) {
    if (host.agent.has_value()) slots += std::max(host.slots.slots, 0);
  }
  return slots;
}

std::vector<std::string> Membership::State::MissingHosts() const {
  std::vector<std::string> missing;
  if (elastic()) return missing;  // what matters is how many slots there are
  for (const Host& host : hosts) {
    if (host.expected && !host.agent.has_value()) missing.push_back(host.slots.host);
  }
  return missing;
}

std::string Membership::State::MissingText() const {
  const std::vector<std::string> missing = MissingHosts();
  if (missing.empty()) {
    std::vector<std::string> there;
    for (const Host& host : hosts) {
      if (host.agent.has_value()) there.push_back(host.slots.host);
    }
    return absl::StrCat("more hosts to attach (", AttachedSlots(), " of ",
                        Count(start_workers(), "slot"),
                        there.empty() ? "" : absl::StrCat(", on ", Hosts(there)), ")");
  }
  const size_t expected = spec.expected_hosts.size();
  return absl::StrCat(Hosts(missing), " to attach (", expected - missing.size(), " of ", expected,
                      " attached)");
}

}  // namespace hvd
