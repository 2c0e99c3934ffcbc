#include "launcher/report/status_line.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/reporting/wait_reporter.h"

namespace hvd::launcher::report {
namespace {

using rendezvous::lifecycle::JobState;
using rendezvous::lifecycle::WorkerState;

std::string Count(int n, absl::string_view what) {
  return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
}

struct Tally {
  int members = 0;
  int hosts = 0;  // with members
  int starting = 0;
  int ready = 0;  // newcomers that wait for the next world
  int leaving = 0;
  int asking = 0;  // members that wait for the next world
};

Tally CountWorkers(const rendezvous::membership::Membership::View& view) {
  Tally tally;
  for (const rendezvous::membership::Membership::HostView& host : view.hosts) {
    const int before = tally.members;
    for (const rendezvous::membership::Membership::WorkerView& worker : host.workers) {
      const bool joining = worker.state == WorkerState::kJoining;
      if (worker.state == WorkerState::kStarting) ++tally.starting;
      if (worker.state == WorkerState::kLeaving) ++tally.leaving;
      if (joining && worker.rank < 0) ++tally.ready;
      if (joining && worker.rank >= 0) ++tally.asking;
      if (worker.state == WorkerState::kRunning || (joining && worker.rank >= 0)) ++tally.members;
    }
    if (tally.members > before) ++tally.hosts;
  }
  return tally;
}

// The first host with a problem, and the number of other hosts with problems.
std::string Troubles(const rendezvous::membership::Membership::View& view) {
  std::string first;
  int others = 0;
  for (const rendezvous::membership::Membership::HostView& host : view.hosts) {
    if (host.condition.empty()) continue;
    if (!first.empty()) ++others;
    if (first.empty()) first = absl::StrCat(host.host.host, ": ", host.condition);
  }
  return others == 0 ? first : absl::StrCat(first, " (and ", Count(others, "more host"), ")");
}

}  // namespace

StatusLine MakeStatusLine(const rendezvous::membership::Membership::View& view, absl::Time now) {
  const Tally tally = CountWorkers(view);
  const std::string troubles = Troubles(view);
  const bool running = view.state == JobState::kRunning;
  std::vector<std::string> parts;
  if (view.epoch > Epoch(0)) parts.push_back(absl::StrCat("world ", view.epoch.value()));
  if (running) {
    parts.push_back(
        absl::StrCat(Count(tally.members, "worker"), " on ", Count(tally.hosts, "host")));
    if (tally.starting > 0) parts.push_back(absl::StrCat(tally.starting, " starting"));
    if (tally.ready > 0) parts.push_back(absl::StrCat(tally.ready, " ready to join"));
    if (tally.leaving > 0) parts.push_back(absl::StrCat(tally.leaving, " leaving"));
  } else {
    parts.push_back(absl::StrCat(
        StateName(view.state), ": ",
        rendezvous::reporting::WithPatience(view.explanation, view.waits_until - now)));
  }
  if (view.failures > 0) {
    parts.push_back(
        absl::StrCat(Count(view.failures, "failure"), " (", view.failures_left, " left)"));
  }
  if (!troubles.empty()) parts.push_back(troubles);
  // In any other state the text may change without a notice: workers become ready, cooldowns of
  // slots end, failures expire.
  const bool settled = running && view.failures == 0 && troubles.empty() &&
                       tally.starting + tally.ready + tally.leaving + tally.asking == 0;
  return {absl::StrJoin(parts, " | "), settled};
}

}  // namespace hvd::launcher::report
