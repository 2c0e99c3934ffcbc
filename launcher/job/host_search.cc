#include "launcher/job/host_search.h"

#include <map>
#include <string>
#include <thread>
#include <utility>

#include "base/cancellation.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "launcher/discovery/empty_list_filter.h"
#include "launcher/discovery/host_source.h"

namespace hvd::launcher::job {
namespace {

// A cache of how the hosts of the last list are reached. Names are resolved only for new hosts;
// hosts that are no longer listed are dropped from the cache. Not thread-safe.
class Places {
 public:
  explicit Places(std::shared_ptr<const spawn::HostLauncher> launcher)
      : launcher_(std::move(launcher)) {}

  absl::StatusOr<std::vector<plan::PlannedHost>> Find(
      const std::vector<rendezvous::membership::HostSlots>& hosts) {
    std::vector<rendezvous::membership::HostSlots> unknown;
    for (const rendezvous::membership::HostSlots& host : hosts) {
      if (targets_.count(host.host) == 0) unknown.push_back(host);
    }
    std::map<std::string, spawn::AgentTarget> targets;
    if (!unknown.empty()) {
      ASSIGN_OR_RETURN(const plan::LocalMachine machine, plan::ThisMachine());
      net::NameTable names;
      for (const plan::PlannedHost& host : plan::PlaceHosts(unknown, launcher_, machine, names)) {
        targets[host.target.host] = host.target;
      }
    }
    std::vector<plan::PlannedHost> found;
    for (const rendezvous::membership::HostSlots& host : hosts) {
      targets.insert(targets_.extract(host.host));
      found.push_back({targets[host.host], host.slots, 0});
    }
    // Replaced as a whole, which drops the hosts that are not in this list. A host that returns
    // later is resolved again: its address may have changed.
    targets_ = std::move(targets);
    return found;
  }

 private:
  const std::shared_ptr<const spawn::HostLauncher> launcher_;
  std::map<std::string, spawn::AgentTarget> targets_;
};

class Searching : public HostSearch {
 public:
  Searching(const plan::JobPlan& plan, OnHostsFound on_found)
      : plan_(plan), source_(*plan.source), places_(plan.launcher), on_found_(std::move(on_found)) {
    thread_ = StartSignalFreeThread([this] { Run(); });
  }
  ~Searching() override {
    stop_.Cancel(absl::CancelledError("no host is searched for any more"));
    thread_.join();
  }

 private:
  void Run() {
    discovery::EmptyListFilter lists(source_.name());
    while (true) {
      discovery::HostSource::Hosts hosts = lists.Check(source_.Next(stop_));
      // After the cancellation no result is reported, not even one that was found just before it.
      if (!stop_.status().ok()) return;
      const absl::Status status = hosts.ok() ? plan::CheckSlots(*hosts, plan_) : hosts.status();
      if (status.ok()) {
        on_found_(places_.Find(*hosts));
      } else {
        on_found_(status);
      }
    }
  }

  const plan::JobPlan& plan_;
  discovery::HostSource& source_;
  Places places_;
  const OnHostsFound on_found_;
  Cancellation stop_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<HostSearch> SearchHosts(const plan::JobPlan& plan, OnHostsFound on_found) {
  return std::make_unique<Searching>(plan, std::move(on_found));
}

}  // namespace hvd::launcher::job
