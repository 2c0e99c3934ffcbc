#include "base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/fd.h"

namespace hvd {
namespace {

// The fourth field of /proc/PID/stat. The second, the name, is in parentheses and may contain
// anything.
bool IsChildOf(pid_t pid, pid_t parent) {
  Fd file(open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const IoResult got = ReadSome(file.get(), text, sizeof(text));
  const absl::string_view line(text, got.bytes);
  const size_t name_end = line.rfind(')');
  if (name_end == absl::string_view::npos) return false;
  const std::vector<absl::string_view> fields = absl::StrSplit(line.substr(name_end), ' ');
  int ppid = 0;
  return fields.size() > 2 && absl::SimpleAtoi(fields[2], &ppid) && ppid == parent;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), &closedir);
  if (proc == nullptr) return children;
  while (const dirent* entry = readdir(proc.get())) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && IsChildOf(pid, parent)) children.push_back(pid);
  }
  return children;
}

void BecomeSubreaper() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

void KillDescendants() {
  for (;;) {
    // Before each wait all children known now are killed; one that comes later comes because its
    // parent, which was killed, has died, and that ends the wait.
    for (pid_t child : ChildrenOf(getpid())) kill(child, SIGKILL);
    if (TEMP_FAILURE_RETRY(waitpid(-1, nullptr, 0)) < 0 && errno == ECHILD) return;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

}  // namespace hvd
