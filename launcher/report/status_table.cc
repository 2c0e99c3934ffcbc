#include "launcher/report/status_table.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/text/duration_text.h"
#include "rendezvous/reporting/wait_reporter.h"

namespace hvd::launcher::report {
namespace {

// A maximum size from here on means "no limit".
constexpr int kVeryMany = 1 << 20;

using Row = std::vector<std::string>;

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
    absl::StrAppend(&text, line, "\n");
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

// The world's number and age. The age comes from the recent events, and is missing if that event
// has been dropped from them.
std::string WorldText(const pb::GetStatusResponse& status) {
  std::string text = absl::StrCat("world ", status.epoch());
  const auto formed = std::find_if(status.recent().rbegin(), status.recent().rend(),
                                   [](const auto& it) { return it.kind() == "world_formed"; });
  if (formed != status.recent().rend())
    absl::StrAppend(&text, " (formed ", Ago(formed->age_ms()), ")");
  return text;
}

std::string Failures(const pb::GetStatusResponse& status) {
  const std::string text = Count(status.failures(), "failure");
  const bool forgives = status.failures_left() > 0 || status.min_workers() != status.max_workers();
  return forgives ? absl::StrCat(text, " (", status.failures_left(), " left)") : text;
}

std::string Size(const pb::GetStatusResponse& status) {
  const std::string workers = Count(status.size(), "worker");
  if (status.min_workers() == status.max_workers()) return workers;
  const std::string most =
      status.max_workers() >= kVeryMany ? "" : absl::StrCat(", at most ", status.max_workers());
  return absl::StrCat(workers, " (at least ", status.min_workers(), most, ")");
}

// ", commit 40 (3s ago), lost 12 steps and 7s"; empty: there is no commit, and nothing was lost.
std::string ProgressText(const pb::GetStatusResponse& status) {
  std::string text;
  if (status.commit() > 0) absl::StrAppend(&text, ", commit ", status.commit());
  if (status.commit() > 0 && status.has_commit_age_ms()) {
    absl::StrAppend(&text, " (", Ago(status.commit_age_ms()), ")");
  }
  if (status.lost_ms() == 0) return text;
  absl::StrAppend(&text, ", lost ");
  if (status.lost_steps() > 0) absl::StrAppend(&text, Count(status.lost_steps(), "step"), " and ");
  absl::StrAppend(&text, text::DurationText(absl::Milliseconds(status.lost_ms())));
  return text;
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
      "job ", status.job_id(), ": ", status.state(), ", ", WorldText(status), ", ", Size(status),
      ", ", Count(status.worlds(), "world"), ", ", Failures(status), ProgressText(status), "\n",
      Explanation(status), "\n", status.checkpoint(), status.checkpoint().empty() ? "\n" : "\n\n");
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
  for (const pb::Happening& happening : status.recent()) {
    absl::StrAppend(&text, Ago(happening.age_ms()), "  ", happening.text(), "\n");
  }
  return text;
}

}  // namespace hvd::launcher::report
