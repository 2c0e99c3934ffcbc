#include "launcher/job/elastic_fleet.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::launcher::job {

void ElasticFleet::SetHosts(const std::vector<plan::PlannedHost>& hosts) {
  std::vector<std::pair<std::string, int>> report;
  std::vector<rendezvous::membership::HostSlots> slots;
  std::vector<std::string> names;
  hosts_.clear();
  for (const plan::PlannedHost& host : hosts) {
    report.emplace_back(host.target.host, host.slots);
    slots.push_back({host.target.host, host.slots});
    names.push_back(host.target.host);
    hosts_[host.target.host] = host;
  }
  if (!has_reported_ || report != reported_) server_.ReportHosts(std::move(slots));
  has_reported_ = true;
  reported_ = std::move(report);

  // The report comes first, so that the daemon drains the hosts that are gone while their agents
  // are attached. Only the other agents are ended here.
  EndUnattached(roster_.SetHosts(names));
  StartDue();
}

void ElasticFleet::Withdraw() { EndUnattached(roster_.SetHosts({})); }

// Ends the agents on these hosts that are not attached to the daemon, and which the daemon
// therefore can't end.
void ElasticFleet::EndUnattached(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return;
  std::set<std::string> ending(hosts.begin(), hosts.end());
  for (const rendezvous::membership::Membership::HostView& view : server_.Describe().hosts) {
    if (view.attached) ending.erase(view.host.host);
  }
  for (const size_t agent : agents_.agents()) {
    if (ending.count(agents_.target(agent).host) == 0) continue;
    agents_.CloseInput(agent);
    // An ssh that is still connecting does not notice the end of its stdin.
    if (!agents_.ready(agent)) agents_.Kill(agent);
  }
}

void ElasticFleet::StartDue() {
  for (const std::string& host : roster_.Due(clock_.Now())) Start(host);
}

void ElasticFleet::Start(const std::string& host) {
  const plan::PlannedHost& planned = hosts_.at(host);
  absl::Status status;
  const absl::StatusOr<pb::AgentBootstrap> bootstrap = make_bootstrap_(planned);
  status = bootstrap.status();
  if (status.ok()) status = agents_.Start(planned.target, *bootstrap).status();
  if (status.ok()) return roster_.Started(host);
  Fail(host, std::string(status.message()), /*refused=*/true);
}

void ElasticFleet::OnReady(size_t agent) {
  one_was_ready_ = true;
  roster_.Ready(agents_.target(agent).host, clock_.Now());
}

void ElasticFleet::OnRefused(size_t agent, const std::string& message) {
  refusals_[agent] = message;
}

void ElasticFleet::OnExited(size_t agent, const spawn::AgentExit& exit) {
  const spawn::AgentTarget target = agents_.target(agent);
  // A refusal arrives before the exit. It says more than the exit code, so it is the reason that
  // counts.
  const bool was_ready = agents_.ready(agent);
  // Before Fail, which may start the next agent of this host.
  agents_.Forget(agent);
  const auto refusal = refusals_.extract(agent);
  if (!refusal.empty()) return Fail(target.host, refusal.mapped(), /*refused=*/true);
  if (!was_ready)
    return Fail(target.host, spawn::ExplainEarlyExit(target, exit), /*refused=*/false);
  if (exit.exit_code == 0 && exit.signal == 0) return roster_.Left(target.host);
  Fail(target.host, absl::StrCat(target.host, ": its agent has ended: ", DescribeExit(exit)),
       /*refused=*/false);
}

void ElasticFleet::Fail(const std::string& host, const std::string& why, bool refused) {
  // No warning if this failure ends the job (see Refused): the final message contains the reason.
  if (!roster_.Failed(host, why, refused, clock_.Now()) || !Refused().ok()) return;
  const std::string prefix = absl::StrCat(host, ": ");
  warn_(absl::StrCat(absl::StartsWith(why, prefix) ? "" : prefix, why,
                     "; trying again while it is listed"));
}

absl::Status ElasticFleet::Refused() const {
  if (one_was_ready_ || !roster_.AllRefused()) return absl::OkStatus();
  return absl::FailedPreconditionError(roster_.WhyNone());
}

absl::Status ElasticFleet::Unusable() const {
  const std::string why = one_was_ready_ ? "" : roster_.WhyNone();
  return why.empty() ? absl::OkStatus() : absl::UnavailableError(why);
}

}  // namespace hvd::launcher::job
