// Host discovery for a job: the script's hosts, and how each is reached.
#ifndef LAUNCHER_JOB_HOST_SEARCH_H_
#define LAUNCHER_JOB_HOST_SEARCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/discovery/host_script.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher::job {

using OnHostsFound = std::function<void(absl::StatusOr<std::vector<plan::PlannedHost>>)>;

// Runs the plan's script as HostScript does, with its errors and EmptyLists'; asks the resolver
// about each name once as long as it is listed.   REQUIRES: plan.elastic names a script.
absl::StatusOr<std::unique_ptr<discovery::HostScript>> SearchHosts(const plan::JobPlan& plan,
                                                                   OnHostsFound on_found);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HOST_SEARCH_H_
