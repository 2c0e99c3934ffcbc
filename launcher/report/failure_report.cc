#include "launcher/report/failure_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hvd::launcher::report {
namespace {

constexpr char kSentence[] = "Horovod ended the job because ";

const std::string& Rule() {
  static const auto* const rule = new std::string(80, '-');
  return *rule;
}

// Removes line breaks, so that a worker's text can't break the layout of this block. Other bytes of
// the text are kept.
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
    // A rank that left with exit code 0 is a cause too: the other ranks failed because it was
    // missing.
    const bool left = verdict.exit_meaning == "exit code 0";
    absl::StrAppend(&text, kSentence,
                    left ? "a process left while others still needed it:\n"
                         : "a process failed. The first was:\n",
                    "Process name: ", verdict.rank, "\nExit code: ", left ? 0 : verdict.exit_code,
                    "\n");
  } else if (!verdict.host.empty()) {
    // A lost host has no first rank: all its processes ended together.
    absl::StrAppend(&text, kSentence, "a host was lost.\n");
  } else {
    absl::StrAppend(&text, "The job has failed.\n");
  }
  // The summary contains the rank, the host, the exception and the exit status.
  absl::StrAppend(&text, "  Cause: ", OneLine(verdict.summary), "\n", Tail(verdict.stderr_tail),
                  Consequences(verdict.consequences), Rule(), "\n");
  return text;
}

}  // namespace hvd::launcher::report
