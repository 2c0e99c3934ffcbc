#include "rendezvous/membership/workers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::membership {

const Worker* Workers::Find(WorkerId id) const {
  const auto found =
      std::lower_bound(workers_.begin(), workers_.end(), id,
                       [](const Worker& w, WorkerId wanted) { return w.id < wanted; });
  return found != workers_.end() && found->id == id ? &*found : nullptr;
}

Worker& Workers::Add(Worker worker, Hosts* hosts) {
  ++live;
  ++(*hosts)[worker.host].live;
  workers_.push_back(std::move(worker));
  return workers_.back();
}

void Workers::End(Worker* worker, lifecycle::WorkerLifecycle::Move how, Hosts* hosts) {
  if (worker->life.gone()) return;
  worker->life.Make(how);
  --live;
  --(*hosts)[worker->host].live;
}

void Workers::ForgetGone(Epoch newest) {
  workers_.erase(
      std::remove_if(workers_.begin(), workers_.end(),
                     [&](const Worker& w) { return w.life.gone() && w.last_world != newest; }),
      workers_.end());
}

bool Workers::SomeFail() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.life.failure_told() && !w.life.gone(); });
}

bool Workers::SomeAsk() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.join.has_value(); });
}

bool Workers::SomeSurvive() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.IsSurvivor(); });
}

bool Workers::SomeTrain() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& w) { return w.life.member() && !w.life.gone(); });
}

std::set<Workers::Slot> Workers::TakenSlots() const {
  std::set<Slot> taken;
  for (const Worker& worker : workers_) {
    if (!worker.life.gone()) taken.emplace(worker.host, worker.slot);
  }
  return taken;
}

std::map<Workers::Slot, WorkerId> Workers::NewestInSlots() const {
  std::map<Slot, WorkerId> newest;
  for (const Worker& worker : workers_) newest[{worker.host, worker.slot}] = worker.id;
  return newest;
}

bool Workers::HaveHosts(const Hosts& hosts) const {
  const auto count = static_cast<int>(hosts.size());
  return std::all_of(workers_.begin(), workers_.end(),
                     [count](const Worker& w) { return w.host >= 0 && w.host < count; });
}

std::string Workers::Check(const Hosts& hosts) const {
  if (!HaveHosts(hosts)) return "a worker without a host";
  std::vector<int> live_on(hosts.size());
  int counted = 0;
  WorkerId before;
  std::set<Slot> taken;
  for (const Worker& worker : workers_) {
    const std::string which = absl::StrCat("worker ", worker.id.value());
    if (!(before < worker.id)) return which + " is out of order";
    before = worker.id;
    if (const std::string wrong = worker.life.Check(); !wrong.empty()) {
      return absl::StrCat(which, ": ", wrong);
    }
    if (worker.life.gone() && worker.join.has_value()) return which + " is gone and still asks";
    if (worker.life.gone()) continue;
    if (worker.life.failure_told() && worker.join.has_value()) return which + " fails, and asks";
    ++counted;
    ++live_on[worker.host];
    if (!taken.emplace(worker.host, worker.slot).second) return which + " shares its slot";
  }
  if (counted != live) return "the workers that are not gone are miscounted";
  for (const Host& host : hosts) {
    if (host.live != live_on[hosts.IndexOf(host)]) {
      return absl::StrCat("the workers on host ", host.slots.host, " are miscounted");
    }
  }
  return "";
}

}  // namespace hvd::rendezvous::membership
