// The background host discovery of an elastic job, including how each host is reached.
#ifndef LAUNCHER_JOB_HOST_SEARCH_H_
#define LAUNCHER_JOB_HOST_SEARCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher::job {

// The search runs as long as this object lives. The destructor cancels a Next in progress.
class HostSearch {
 public:
  virtual ~HostSearch() = default;
};

// Receives the hosts or a one-line error: the source's, or NotFound for an empty list that was not
// accepted (see discovery::EmptyListFilter).
using OnHostsFound = std::function<void(absl::StatusOr<std::vector<plan::PlannedHost>>)>;

// Starts a thread that calls Next of the plan's source repeatedly, and `on_found` with each result.
// A host's name is resolved once while the host stays in the list.
// REQUIRES: plan.source is dynamic; nobody else calls its Next.
std::unique_ptr<HostSearch> SearchHosts(const plan::JobPlan& plan, OnHostsFound on_found);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_HOST_SEARCH_H_
