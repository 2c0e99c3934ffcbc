#include "launcher/console/status_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace hvd {
namespace {

// Stands for no limit in a job's size.
constexpr int kVeryMany = 1 << 20;

using Row = std::vector<std::string>;

// Columns as wide as they need to be.
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

std::string Size(const pb::GetStatusResponse& status) {
  if (status.min_workers() == status.max_workers()) return absl::StrCat(status.size(), " workers");
  const std::string most =
      status.max_workers() >= kVeryMany ? "" : absl::StrCat(", at most ", status.max_workers());
  return absl::StrCat(status.size(), " workers (at least ", status.min_workers(), most, ")");
}

std::string HostState(const pb::HostStatus& host) {
  if (!host.condition().empty()) return host.condition();
  return host.attached() ? "" : "not attached";
}

}  // namespace

std::string StatusTable(const pb::GetStatusResponse& status) {
  std::string text =
      absl::StrCat("job ", status.job_id(), ": ", status.state(), ", epoch ", status.epoch(), ", ",
                   Size(status), ", ", status.worlds(), " worlds, ", status.failures(),
                   " failures\n", status.explanation(), "\n\n");
  std::vector<Row> rows = {{"HOST", "SLOTS", "RANK", "WORKER", "PID", "STATE"}};
  for (const pb::HostStatus& host : status.hosts()) {
    rows.push_back({host.host(), absl::StrCat(host.slots()), "", "", "", HostState(host)});
    for (const pb::WorkerStatus& worker : host.workers()) {
      rows.push_back({"", "", worker.rank() >= 0 ? absl::StrCat(worker.rank()) : "-",
                      absl::StrCat(worker.worker_id()),
                      worker.pid() > 0 ? absl::StrCat(worker.pid()) : "-", worker.state()});
    }
  }
  absl::StrAppend(&text, Columns(rows));
  if (status.recent_size() > 0) absl::StrAppend(&text, "\n");
  for (const pb::Happening& happening : status.recent()) {
    const absl::Duration age =
        absl::Trunc(absl::Milliseconds(happening.age_ms()), absl::Seconds(1));
    const std::string ago = age > absl::ZeroDuration() ? absl::FormatDuration(age) : "0s";
    absl::StrAppend(&text, ago, " ago  ", happening.text(), "\n");
  }
  return text;
}

}  // namespace hvd
