#include "launcher/report/failure_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hvd::launcher::report {
namespace {

// Horovod's own words; users and scripts search for them.
constexpr char kSentence[] =
    "Horovod detected that one or more processes exited with non-zero status";
const std::string& Rule() {
  static const auto* const rule = new std::string(80, '-');
  return *rule;
}

// Other bytes of a worker may be anything; this block keeps its lines in order.
std::string OneLine(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\r", ""}, {"\n", " "}});
}

std::string Consequences(int count) {
  if (count == 0) return "";
  if (count == 1) return "  1 other rank failed because of it.\n";
  return absl::StrCat("  ", count, " other ranks failed because of it.\n");
}

std::string Tail(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "  Last lines of its stderr:\n";
  for (const std::string& line : lines) absl::StrAppend(&text, "    | ", OneLine(line), "\n");
  return text;
}

}  // namespace

std::string RootCauseBlock(const rendezvous::membership::Verdict& verdict) {
  std::string text = Rule() + "\n";
  if (verdict.rank >= 0) {
    // Other ranks failed because the first was gone.
    const bool left = verdict.exit_meaning == "exit code 0";
    absl::StrAppend(&text, kSentence, ", thus causing the job to be terminated. The ",
                    left ? "cause was a process that had left:\n" : "first process to do so was:\n",
                    "Process name: ", verdict.rank, "\nExit code: ", left ? 0 : verdict.exit_code,
                    "\n");
  } else if (!verdict.host.empty()) {
    // The processes of a lost host are lost with it.
    absl::StrAppend(&text, kSentence, ", thus causing the job to be terminated.\n");
  } else {
    absl::StrAppend(&text, "The job has failed.\n");
  }
  // The summary names rank, host, exception and exit.
  absl::StrAppend(&text, "  Cause: ", OneLine(verdict.summary), "\n", Tail(verdict.stderr_tail),
                  Consequences(verdict.consequences), Rule(), "\n");
  return text;
}

}  // namespace hvd::launcher::report
