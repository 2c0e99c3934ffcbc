// ExplainEarlyExit of agent_process.h.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/protocol/agent_protocol.h"
#include "base/text/names.h"
#include "launcher/spawn/agent_process.h"

namespace hvd::launcher::spawn {
namespace {

constexpr int kShellNotFound = 127;
constexpr int kShellNotExecutable = 126;

std::vector<std::string> Lines(absl::string_view output) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(output, absl::ByAnyChar("\r\n"))) {
    line = absl::StripAsciiWhitespace(line);
    // It comes from another host, and maybe from a program that is not the launcher's.
    if (!line.empty()) lines.push_back(text::OnOneLine(line));
  }
  return lines;
}

std::string ExplainMissingProgram(const AgentTarget& target, const AgentExit& exit,
                                  const std::string& last_line) {
  return absl::StrCat(
      target.host, ": ", agent::protocol::kAgentProgram,
      exit.exit_code == kShellNotFound ? " was not found" : " can't be executed",
      " there; install this version of horovod on that host, in the same directory as "
      "here or on the PATH that non-interactive shells have",
      last_line.empty() ? "" : absl::StrCat(" (", last_line, ")"));
}

std::string HowItEnded(const AgentExit& exit) {
  if (exit.signal != 0) return absl::StrCat("was killed by signal ", exit.signal);
  return absl::StrCat("exited with code ", exit.exit_code);
}

}  // namespace

std::string ExplainEarlyExit(const AgentTarget& target, const AgentExit& exit) {
  const std::vector<std::string> lines = Lines(exit.stderr_text);
  const std::string last_line = lines.empty() ? "" : lines.back();
  const bool missing = exit.signal == 0 &&
                       (exit.exit_code == kShellNotFound || exit.exit_code == kShellNotExecutable);
  // Before the launcher's complaints: these codes come from the shell on the host, so the
  // connection has worked.
  if (missing) return ExplainMissingProgram(target, exit, last_line);
  if (const auto known = target.launcher->Explain(lines); known.has_value()) {
    return absl::StrCat(target.host, ": ",
                        absl::StrReplaceAll(known->meaning, {{"HOST", target.host}}), " (",
                        target.launcher->name(), ": ", known->line, ")");
  }
  const std::string what = target.local ? std::string(agent::protocol::kAgentProgram)
                                        : absl::StrCat("the ", target.launcher->name(), " session");
  return absl::StrCat(target.host, ": ", what, " ", HowItEnded(exit), " before the host was ready",
                      last_line.empty() ? "" : absl::StrCat(": ", last_line));
}

}  // namespace hvd::launcher::spawn
