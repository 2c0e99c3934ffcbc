#include "launcher/job/host_search.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "launcher/discovery/empty_list_filter.h"

namespace hvd::launcher::job {
namespace {

// Remembers how the hosts of the last list are reached. For one thread.
class Places {
 public:
  explicit Places(spawn::SshOptions ssh) : ssh_(std::move(ssh)) {}

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
      for (const plan::PlannedHost& host : plan::PlaceHosts(unknown, ssh_, machine, names)) {
        targets[host.target.host] = host.target;
      }
    }
    std::vector<plan::PlannedHost> found;
    for (const rendezvous::membership::HostSlots& host : hosts) {
      targets.insert(targets_.extract(host.host));
      found.push_back({targets[host.host], host.slots, 0});
    }
    targets_ = std::move(targets);
    return found;
  }

 private:
  const spawn::SshOptions ssh_;
  std::map<std::string, spawn::AgentTarget> targets_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<discovery::HostScript>> SearchHosts(const plan::JobPlan& plan,
                                                                   OnHostsFound on_found) {
  discovery::HostScriptOptions options;
  options.path = plan.elastic->script;
  options.slots_per_host = plan.elastic->slots_per_host;
  const std::string who = absl::StrCat("the host discovery script ", options.path);
  return discovery::HostScript::Start(
      std::move(options),
      [places = std::make_shared<Places>(plan.ssh),
       lists = std::make_shared<discovery::EmptyLists>(who),
       on_found](absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> hosts) {
        hosts = lists->Judge(std::move(hosts));
        if (!hosts.ok()) return on_found(hosts.status());
        on_found(places->Find(*hosts));
      });
}

}  // namespace hvd::launcher::job
