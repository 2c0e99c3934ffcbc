#include "rendezvous/server/earlier_workers.h"

#include <algorithm>
#include <utility>

namespace hvd::rendezvous::server {

EarlierWorkers::EarlierWorkers(const std::vector<membership::Membership::AttachedHost>& hosts) {
  for (const membership::Membership::AttachedHost& host : hosts) {
    AwaitedHost& added = hosts_.emplace_back();
    added.joined.host = host.host;
    added.joined.agent = host.agent;
    for (const auto& worker : host.workers) added.workers.push_back({worker.id, worker.pid});
  }
}

std::vector<EarlierWorker> EarlierWorkers::Unknown() const {
  std::vector<EarlierWorker> unknown;
  for (const AwaitedHost& host : hosts_) {
    for (const Awaited& worker : host.workers) {
      if (!worker.known) unknown.push_back({worker.id, host.joined.host.host, worker.pid});
    }
  }
  return unknown;
}

bool EarlierWorkers::IsUnknown(WorkerId worker) const {
  const std::vector<EarlierWorker> unknown = Unknown();
  return std::any_of(unknown.begin(), unknown.end(),
                     [worker](const EarlierWorker& one) { return one.worker == worker; });
}

std::vector<membership::Event> EarlierWorkers::Begin() {
  std::vector<membership::Event> due;
  for (const AwaitedHost& host : hosts_) {
    // Nobody reports on such a host, so nothing else would make it rejoin: it would be lost after
    // the reattach timeout.
    if (host.workers.empty()) due.emplace_back(host.joined);
  }
  hosts_.erase(std::remove_if(hosts_.begin(), hosts_.end(), IsComplete), hosts_.end());
  return due;
}

std::optional<std::vector<membership::Event>> EarlierWorkers::Say(
    WorkerId worker, std::optional<membership::Event> said) {
  for (AwaitedHost& host : hosts_) {
    const auto found =
        std::find_if(host.workers.begin(), host.workers.end(),
                     [worker](const Awaited& awaited) { return awaited.id == worker; });
    if (found == host.workers.end()) continue;
    found->known = true;
    found->start_again = !said.has_value();
    if (said.has_value()) host.said.push_back(*std::move(said));
    if (!IsComplete(host)) return std::vector<membership::Event>();
    // `host` refers into hosts_, which the erasure changes.
    AwaitedHost complete = std::move(host);
    hosts_.erase(hosts_.begin() + (&host - hosts_.data()));
    return Return(std::move(complete));
  }
  return std::nullopt;
}

bool EarlierWorkers::IsComplete(const AwaitedHost& host) {
  return std::all_of(host.workers.begin(), host.workers.end(),
                     [](const Awaited& worker) { return worker.known; });
}

std::vector<membership::Event> EarlierWorkers::Return(AwaitedHost host) {
  for (const Awaited& worker : host.workers) {
    // A worker that is missing from known_workers was never started: the machine sends its
    // StartWorkerEffect again.
    if (!worker.start_again) host.joined.known_workers.push_back(worker.id);
  }
  // In the order of an agent that attaches again: first its hello, then what it has missed to
  // report.
  std::vector<membership::Event> due = {std::move(host.joined)};
  for (membership::Event& said : host.said) due.push_back(std::move(said));
  return due;
}

}  // namespace hvd::rendezvous::server
