// The agents of an elastic job: one per host, started and ended as the list of hosts changes.
#ifndef LAUNCHER_JOB_ELASTIC_FLEET_H_
#define LAUNCHER_JOB_ELASTIC_FLEET_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "launcher/job/agent_fleet.h"
#include "launcher/job/host_roster.h"
#include "launcher/plan/plan.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher::job {

// Carries out the decisions of HostRoster. Not thread-safe. All referenced objects must outlive it.
class ElasticFleet {
 public:
  using BootstrapMaker =
      std::function<absl::StatusOr<pb::AgentBootstrap>(const plan::PlannedHost& host)>;
  using Warner = std::function<void(const std::string& line)>;

  ElasticFleet(AgentFleet& agents, rendezvous::server::Server& server, Clock& clock,
               BootstrapMaker make_bootstrap, Warner warn)
      : agents_(agents),
        server_(server),
        clock_(clock),
        make_bootstrap_(std::move(make_bootstrap)),
        warn_(std::move(warn)) {}

  // Takes the current list of hosts: reports it to the daemon and starts agents. Ends the agents on
  // other hosts that are not attached to the daemon.
  void SetHosts(const std::vector<plan::PlannedHost>& hosts);

  // The job is to end: no agent is started any more, and those that are not attached end.
  void Withdraw();

  // Starts the agents that are due; see HostRoster::Due.
  void StartDue();
  absl::Time NextDue() const { return roster_.NextDue(); }

  // Handle the agents' events. OnExited removes the agent from the fleet.
  void OnReady(size_t agent);
  void OnRefused(size_t agent, const std::string& message);
  void OnExited(size_t agent, const spawn::AgentExit& exit);

  // Fails if the job can't start: no agent has been ready yet, and every host has refused.
  // Errors:
  //   - FailedPrecondition: the reason of each host.
  absl::Status Refused() const;
  // Fails if no host could be used so far.
  // Errors:
  //   - Unavailable: the reason of each host.
  absl::Status Unusable() const;

 private:
  void EndUnattached(const std::vector<std::string>& hosts);
  void Start(const std::string& host);
  void Fail(const std::string& host, const std::string& why, bool refused);

  AgentFleet& agents_;
  rendezvous::server::Server& server_;
  Clock& clock_;
  const BootstrapMaker make_bootstrap_;
  const Warner warn_;
  HostRoster roster_;
  std::map<std::string, plan::PlannedHost> hosts_;
  std::vector<std::pair<std::string, int>> reported_;  // to the daemon
  bool has_reported_ = false;
  std::map<size_t, std::string> refusals_;  // of agents that have not exited yet
  bool one_was_ready_ = false;
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_ELASTIC_FLEET_H_
