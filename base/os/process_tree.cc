#include "base/os/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/fd.h"
#include "base/os/process_limits.h"
#include "base/status_macros.h"

namespace hvd::os {
namespace {

constexpr pid_t kOutOfSight = 0, kNoProcess = -1;

// The fourth field of /proc/PID/stat, or kOutOfSight; kNoProcess: there is no such process.
// The second, the name, is in parentheses and may contain anything.
// Errors:
//   - ResourceExhausted: no file descriptor is left.
absl::StatusOr<pid_t> ParentOf(pid_t pid) {
  Fd file(open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() && (errno == EMFILE || errno == ENFILE)) {
    return absl::ResourceExhaustedError(
        errno == EMFILE ? absl::StrCat("all ", OpenFilesLimit(),
                                       " file descriptors of a process are in use (ulimit -n)")
                        : "all file descriptors of this machine are in use (fs.file-max)");
  }
  if (!file.valid()) return kNoProcess;
  char text[512];
  const IoResult got = ReadSome(file.get(), text, sizeof(text));
  const absl::string_view line(text, got.bytes);
  const size_t name_end = line.rfind(')');
  if (name_end == absl::string_view::npos) return kNoProcess;
  const std::vector<absl::string_view> fields = absl::StrSplit(line.substr(name_end), ' ');
  pid_t parent = 0;
  return fields.size() > 2 && absl::SimpleAtoi(fields[2], &parent) ? parent : kOutOfSight;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), &closedir);
  if (proc == nullptr) return children;
  while (const dirent* entry = readdir(proc.get())) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && ParentOf(pid).value_or(kNoProcess) == parent) {
      children.push_back(pid);
    }
  }
  return children;
}

absl::StatusOr<bool> DescendsFrom(pid_t pid, pid_t ancestor) {
  for (pid_t below = pid;;) {
    ASSIGN_OR_RETURN(const pid_t above, ParentOf(below));
    if (above == ancestor) return true;
    if (above == kNoProcess && below != pid) {
      below =
          pid;  // an ancestor ended during the walk; its children have a new parent, so start again
    } else if (above == kNoProcess || above == kOutOfSight || above == 1) {
      return false;
    } else {
      below = above;
    }
  }
}

bool ProcIsOurs() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self", error) == std::to_string(getpid());
}

void BecomeSubreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

void KillDescendants() {
  for (;;) {
    // Kills all present children, then waits for one. A child that appears after the scan is an
    // orphan whose parent has died. That parent was a child that was killed here, or descends from
    // one; the death of that child ends the wait, and the next round finds the orphan. The loop
    // ends when there are no children.
    for (pid_t child : ChildrenOf(getpid())) kill(child, SIGKILL);
    if (TEMP_FAILURE_RETRY(waitpid(-1, nullptr, 0)) < 0 && errno == ECHILD) return;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

}  // namespace hvd::os
