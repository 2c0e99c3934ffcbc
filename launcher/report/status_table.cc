#include "launcher/report/status_table.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/text/duration_text.h"
#include "base/text/names.h"
#include "rendezvous/reporting/wait_reporter.h"

namespace hvd::launcher::report {
namespace {

// A maximum size from here on means "no limit".
constexpr int kVeryMany = 1 << 20;

using Row = std::vector<std::string>;

// Many of the texts are the words of other processes.
std::string Line(absl::string_view words) { return text::OnOneLine(words) + "\n"; }

// Formats rows as columns, each as wide as its widest cell.
std::string Columns(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppendFormat(&line, "%-*s  ", static_cast<int>(widths[i]), row[i]);
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, Line(line));
  }
  return text;
}

std::string Count(uint64_t n, absl::string_view what) {
  return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
}

std::string Ago(uint64_t milliseconds) {
  const absl::Duration age = absl::Trunc(absl::Milliseconds(milliseconds), absl::Seconds(1));
  return absl::StrCat(age > absl::ZeroDuration() ? text::DurationText(age) : "0s", " ago");
}

// "world 2, 3 ranks (at least 1, at most 4), formed 6s ago". The age comes from the recent events,
// and is missing if that event has been dropped from them.
std::string WorldText(const pb::GetStatusResponse& status) {
  std::string text = status.epoch() == 0 ? "no world yet"
                                         : absl::StrCat("world ", status.epoch(), ", ",
                                                        Count(status.size(), "rank"));
  if (status.elastic()) {
    absl::StrAppend(&text, " (at least ", status.min_workers());
    if (status.max_workers() < kVeryMany)
      absl::StrAppend(&text, ", at most ", status.max_workers());
    absl::StrAppend(&text, ")");
  }
  const auto formed = std::find_if(status.recent().rbegin(), status.recent().rend(),
                                   [](const auto& it) { return it.kind() == "world_formed"; });
  if (formed != status.recent().rend()) absl::StrAppend(&text, ", formed ", Ago(formed->age_ms()));
  return text;
}

// "1 failure (19 more are forgiven)"
std::string Failures(const pb::GetStatusResponse& status) {
  const std::string text = Count(status.failures(), "failure");
  if (!status.elastic()) return text;
  return absl::StrCat(text, " (", status.failures_left(),
                      status.failures_left() == 1 ? " more is forgiven)" : " more are forgiven)");
}

// "commit 40 (3s ago, 2.5 per second)"
std::string CommitText(const pb::GetStatusResponse& status) {
  std::vector<std::string> details;
  if (status.has_commit_age_ms()) details.push_back(Ago(status.commit_age_ms()));
  if (status.commit_rate() > 0)
    details.push_back(absl::StrFormat("%.3g per second", status.commit_rate()));
  const std::string text = absl::StrCat("commit ", status.commit());
  return details.empty() ? text : absl::StrCat(text, " (", absl::StrJoin(details, ", "), ")");
}

// "12 steps and 7s of work lost"
std::string LossText(const pb::GetStatusResponse& status) {
  const std::string steps =
      status.lost_steps() > 0 ? absl::StrCat(Count(status.lost_steps(), "step"), " and ") : "";
  return absl::StrCat(steps, text::DurationText(absl::Milliseconds(status.lost_ms())),
                      " of work lost");
}

// The totals, on a line; empty: a static job without failures or commits.
std::string Totals(const pb::GetStatusResponse& status) {
  std::vector<std::string> parts;
  if (status.worlds() > 0) parts.push_back(Count(status.worlds(), "world") + " so far");
  if (status.elastic() || status.failures() > 0) parts.push_back(Failures(status));
  if (status.commit() > 0) parts.push_back(CommitText(status));
  if (status.lost_ms() > 0) parts.push_back(LossText(status));
  return parts.empty() ? "" : absl::StrCat(absl::StrJoin(parts, ", "), "\n");
}

// "command: python train.py\ndaemon: pid 4711 on n1\n"
std::string Processes(const pb::GetStatusResponse& status) {
  return absl::StrCat(
      status.command().empty() ? "" : absl::StrCat("command: ", Line(status.command())),
      status.daemon_pid() == 0
          ? ""
          : absl::StrCat("daemon: pid ", status.daemon_pid(), " on ", Line(status.daemon_host())));
}

std::string Explanation(const pb::GetStatusResponse& status) {
  return rendezvous::reporting::WithPatience(
      status.explanation(), status.has_wait_left_ms() ? absl::Milliseconds(status.wait_left_ms())
                                                      : absl::InfiniteDuration());
}

// `first`: the first host listed that is on the same machine.
std::string HostState(const pb::HostStatus& host, const std::string& first) {
  std::vector<std::string> parts;
  if (!host.condition().empty()) {
    parts.push_back(host.condition());
  } else if (!host.attached()) {
    parts.push_back("not attached");
  }
  if (first != host.host()) parts.push_back(absl::StrCat("same machine as ", first));
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string StatusTable(const pb::GetStatusResponse& status) {
  std::string text = absl::StrCat(
      Line(absl::StrCat("job ", status.job_id(), ": ", status.state(), ", ", WorldText(status))),
      Line(Explanation(status)), Totals(status),
      status.checkpoint().empty() ? "" : Line(status.checkpoint()), Processes(status), "\n");
  std::vector<Row> rows = {{"HOST", "SLOTS", "RANK", "WORKER", "PID", "STATE"}};
  std::map<std::string, std::string> first_hosts;  // by machine
  for (const pb::HostStatus& host : status.hosts()) {
    const std::string& machine = host.machine().empty() ? host.host() : host.machine();
    const std::string& first = first_hosts.emplace(machine, host.host()).first->second;
    rows.push_back({host.host(), absl::StrCat(host.slots()), "", "", "", HostState(host, first)});
    for (const pb::WorkerStatus& worker : host.workers()) {
      rows.push_back({"", "", worker.rank() >= 0 ? absl::StrCat(worker.rank()) : "-",
                      absl::StrCat(worker.worker_id()),
                      worker.pid() > 0 ? absl::StrCat(worker.pid()) : "-", worker.state()});
    }
  }
  absl::StrAppend(&text, Columns(rows));
  if (status.recent_size() > 0) absl::StrAppend(&text, "\n");
  std::string previous;
  for (const pb::Happening& happening : status.recent()) {
    // The loss of a host and the break of its world are two events with one text.
    if (std::exchange(previous, happening.text()) == happening.text()) continue;
    absl::StrAppend(&text, Ago(happening.age_ms()), "  ", Line(happening.text()));
  }
  return text;
}

}  // namespace hvd::launcher::report
