#include "agent/inspection/process_state.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/fd.h"
#include "base/os/process_tree.h"

namespace hvd::agent::inspection {
namespace {

// Returns a file in /proc/PID; empty: it can't be read. `status` is long if the user is in many
// groups.
std::string Read(pid_t pid, absl::string_view name) {
  const Fd file(open(absl::StrCat("/proc/", pid, "/", name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  while (file.valid()) {
    const IoResult got = ReadSome(file.get(), buffer, sizeof(buffer));
    if (got.bytes == 0) break;
    text.append(buffer, got.bytes);
  }
  return text;
}

// Returns the fields of /proc/PID/stat from the third one, the state: "12 (name) T ...". The second
// field, the name, may contain any characters, parentheses too, so the last ')' ends it. Empty:
// there is no such process.
std::vector<std::string> StatOf(pid_t pid) {
  const std::string text = Read(pid, "stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return {};
  return absl::StrSplit(text.substr(name_end + 2), absl::ByAnyChar(" \n"));
}

}  // namespace

char StateOf(pid_t pid) {
  const std::vector<std::string> stat = StatOf(pid);
  return stat.empty() || stat[0].empty() ? '\0' : stat[0][0];
}

bool IsStopped(pid_t pid) { return StateOf(pid) == 'T'; }

bool IsExiting(pid_t pid) {
  constexpr size_t kFlags = 9 - 3;            // field 9
  constexpr uint32_t kExiting = 0x4 | 0x200;  // the kernel's PF_EXITING and PF_DUMPCORE
  const std::vector<std::string> stat = StatOf(pid);
  uint32_t flags = 0;
  const bool is_known = stat.size() > kFlags && absl::SimpleAtoi(stat[kFlags], &flags);
  return is_known && (flags & kExiting) != 0;
}

std::vector<pid_t> CatchersOf(pid_t root, int signal) {
  if (Catches(root, signal)) return {root};
  std::vector<pid_t> catchers;
  for (const pid_t child : os::ChildrenOf(root)) {
    const std::vector<pid_t> below = CatchersOf(child, signal);
    catchers.insert(catchers.end(), below.begin(), below.end());
  }
  return catchers;
}

std::optional<os::ExitStatus> EndOf(pid_t pid) {
  constexpr size_t kExitCode = 52 - 3;  // field 52, in the form of waitpid's status
  const std::vector<std::string> stat = StatOf(pid);
  int code = 0;
  if (stat.size() <= kExitCode || stat[0] != "Z" || !absl::SimpleAtoi(stat[kExitCode], &code)) {
    return std::nullopt;
  }
  if (WIFEXITED(code)) return os::ExitStatus{WEXITSTATUS(code), 0, false};
  return os::ExitStatus{0, WTERMSIG(code), WCOREDUMP(code) != 0};
}

bool Catches(pid_t pid, int signal) {
  const std::string caught_line = "\nSigCgt:\t";
  const std::string text = Read(pid, "status");
  const size_t found = text.find(caught_line);
  uint64_t caught = 0;
  return found != std::string::npos &&
         absl::SimpleHexAtoi(absl::string_view(text).substr(found + caught_line.size(), 16),
                             &caught) &&
         (caught >> (signal - 1) & 1) != 0;
}

}  // namespace hvd::agent::inspection
