// The search for the hosts of an elastic job while it runs, and how each is reached.
#ifndef LAUNCHER_JOB_HOST_SEARCH_H_
#define LAUNCHER_JOB_HOST_SEARCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher::job {

// The search goes on for as long as this lives. The destructor stops a Next that is under way.
class HostSearch {
 public:
  virtual ~HostSearch() = default;
};

// The hosts, or a status in one line: the source's, or NotFound for an empty list that is not
// believed (see discovery::EmptyListFilter).
using OnHostsFound = std::function<void(absl::StatusOr<std::vector<plan::PlannedHost>>)>;

// Asks the plan's source for hosts again and again, on a thread of its own, which calls `on_found`
// with each result. Asks the resolver about a name once, for as long as it is listed.
// REQUIRES: plan.source is dynamic; nobody else asks it.
std::unique_ptr<HostSearch> SearchHosts(const plan::JobPlan& plan, OnHostsFound on_found);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HOST_SEARCH_H_
