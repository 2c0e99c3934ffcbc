// The continuous search for the hosts of an elastic job, and for the way to reach each.
#ifndef LAUNCHER_JOB_HOST_SEARCH_H_
#define LAUNCHER_JOB_HOST_SEARCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher::job {

// The search runs during the life of this object. The destructor cancels a Next that is in
// progress.
class HostSearch {
 public:
  virtual ~HostSearch() = default;
};

// Takes the hosts, or a status in one line: the source's, or NotFound for an empty list that is not
// accepted (see discovery::EmptyListFilter).
using OnHostsFound = std::function<void(absl::StatusOr<std::vector<plan::PlannedHost>>)>;

// Calls Next of the plan's source repeatedly, on its own thread, which calls `on_found` with each
// result. Resolves a name once, for as long as it is listed.
// REQUIRES: plan.source is dynamic; nobody else calls its Next.
std::unique_ptr<HostSearch> SearchHosts(const plan::JobPlan& plan, OnHostsFound on_found);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HOST_SEARCH_H_
