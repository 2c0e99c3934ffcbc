#include "rehearsal/rehearsal_report.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/json_object.h"
#include "base/text/names.h"
#include "base/text/shortened.h"

namespace hvd::rehearsal {
namespace {

using Cells = std::array<std::string, 7>;

constexpr size_t kWidest = 160;  // of a cell, in bytes; the JSON has all

std::string Seconds(const std::optional<absl::Duration>& time) {
  return time.has_value() ? absl::StrFormat("%.2f", absl::ToDoubleSeconds(*time)) : "-";
}

Cells CellsOf(const Row& row) {
  Cells cells = {std::string(FactsOf(row.kind).name),
                 row.target,
                 row.when,
                 std::string(NameOf(row.verdict)),
                 absl::StrCat(Seconds(row.took), " of ", Seconds(row.limit)),
                 row.expected,
                 row.happened};
  // Names and messages of other processes.
  for (std::string& cell : cells) cell = text::Shortened(text::OnOneLine(cell), kWidest);
  return cells;
}

size_t CountAsPromised(const RehearsalReport& report) {
  return std::count_if(report.rows.begin(), report.rows.end(),
                       [](const Row& row) { return row.verdict == Verdict::kAsPromised; });
}

std::optional<double> Number(const std::optional<absl::Duration>& time) {
  if (!time.has_value()) return std::nullopt;
  return absl::ToInt64Milliseconds(*time) / 1000.0;
}

text::JsonObject ObjectOf(const Row& row) {
  text::JsonObject object;
  object.AddText("kind", FactsOf(row.kind).name)
      .AddText("target", row.target)
      .AddText("when", row.when)
      .AddText("expected", row.expected)
      .AddText("happened", row.happened)
      .AddNumber("seconds", Number(row.took))
      .AddNumber("limit_seconds", Number(row.limit))
      .AddText("verdict", NameOf(row.verdict));
  return object;
}

}  // namespace

std::string ReportTable(const RehearsalReport& report) {
  std::vector<Cells> lines = {
      {"fault", "target", "when", "verdict", "seconds", "expected", "what happened"}};
  for (const Row& row : report.rows) lines.push_back(CellsOf(row));
  std::array<int, 7> widths = {};
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], static_cast<int>(cells[i].size()));
  }
  std::string table;
  for (const Cells& cells : lines) {
    for (size_t i = 0; i + 1 < cells.size(); ++i)
      absl::StrAppendFormat(&table, "%-*s  ", widths[i], cells[i]);
    absl::StrAppend(&table, cells.back(), "\n");
  }
  const size_t good = CountAsPromised(report);
  absl::StrAppend(&table, good, " of ", report.rows.size(), " faults as promised; ",
                  report.job_exit_code == 0
                      ? std::string("the job ended well")
                      : absl::StrCat("the job ended with ", report.job_exit_code),
                  "\n");
  return table;
}

std::string ReportJson(const RehearsalReport& report) {
  text::JsonObject object;
  object.AddBool("as_promised", report.exit_code == 0)
      .AddNumber("exit_code", report.exit_code)
      .AddNumber("job_exit_code", report.job_exit_code)
      .AddNumber("seed", report.seed)
      .AddList("faults", report.rows, ObjectOf);
  return object.Text() + "\n";
}

}  // namespace hvd::rehearsal
