#include "launcher/dry_run.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "rendezvous/placement/static_ranks.h"

namespace hvd::launcher {
namespace {

// One line per rank, with the values of HOROVOD_RANK and the related variables.
std::string RankTable(const plan::JobPlan& plan) {
  std::string table = "\n  rank  local_rank  local_size  cross_rank  cross_size  host\n";
  std::vector<rendezvous::placement::HostSlots> slots;
  for (const plan::PlannedHost& host : plan.hosts) slots.push_back({host.target.host, host.slots});
  // The function that the daemon calls, so the table can't differ from the job.
  for (const auto& [host, slot, place] :
       rendezvous::placement::AssignStaticRanks(slots, plan.num_proc)) {
    absl::StrAppendFormat(&table, "  %4d  %10d  %10d  %10d  %10d  %s\n", place.rank,
                          place.local_rank, place.local_size, place.cross_rank, place.cross_size,
                          slots[host].host);
  }
  return table;
}

std::string Variables(const plan::JobPlan& plan, const cli::Options& options) {
  std::string text = absl::StrCat("\nEnvironment of the workers: this one's ",
                                  plan.environment.size(), " variables, with\n");
  for (const char* name : {"PYTHONUNBUFFERED", "HOROVOD_CONTROLLER"}) {
    absl::StrAppend(&text, "  ", name, "=", plan.environment.at(name), "\n");
  }
  for (const auto& [name, value] : options.tunables) {
    absl::StrAppend(&text, "  ", name, "=", value, "\n");
  }
  // Such values are often passwords, and plans are pasted into tickets.
  for (const auto& [name, unused] : options.exports) {
    absl::StrAppend(&text, "  ", name, " (from -x; its value is not shown)\n");
  }
  return text;
}

std::string Unchecked(const plan::JobPlan& plan) {
  std::vector<std::string> unchecked;
  const bool remote = std::any_of(plan.hosts.begin(), plan.hosts.end(),
                                  [](const plan::PlannedHost& host) { return !host.target.local; });
  if (plan.source->is_dynamic()) {
    unchecked.push_back(absl::StrCat("which hosts ", plan.source->name(), " finds"));
  }
  if (remote) {
    unchecked.push_back(absl::StrCat("that the hosts can be reached with ", plan.launcher->name(),
                                     ", and have this version"));
  }
  unchecked.push_back("that the command is there");
  return absl::StrCat("\nNothing was started, and no host asked. Not checked: ",
                      absl::StrJoin(unchecked, "; "), ".\n");
}

}  // namespace

std::string DryRunText(const plan::JobPlan& plan, const cli::Options& options) {
  std::string text = plan::PlanTable(plan);
  // Elastic jobs decide their ranks only when the workers ask for a world.
  if (!plan.elastic.has_value()) text += RankTable(plan);
  absl::StrAppend(&text, "\nWorking directory: ", plan.working_directory,
                  "\nThe daemon would listen on a port of the system's choice: ",
                  absl::StrJoin(plan.listen, ", "), "\n");
  if (!options.output.directory.empty()) {
    absl::StrAppend(&text, "Output would also go to ", options.output.directory,
                    "/rank.N/stdout and stderr, which would be emptied first\n");
  }
  return absl::StrCat(text, Variables(plan, options), Unchecked(plan));
}

}  // namespace hvd::launcher
