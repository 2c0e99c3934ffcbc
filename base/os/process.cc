#include "base/os/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/os/process_limits.h"
#include "base/status_macros.h"

namespace hvd::os {
namespace {

// Constants that some supported C libraries do not define.
constexpr int kCloseRangeCloexec = 4;                    // CLOSE_RANGE_CLOEXEC
constexpr idtype_t kByPidfd = static_cast<idtype_t>(3);  // P_PIDFD

// The report of a child that could not execute the program.
struct ChildError {
  enum Step { kStdio, kDirectory, kExecute } step;
  int error;
};

// Everything that the child needs, prepared before fork: between fork and exec only
// async-signal-safe calls are allowed, so the child must not allocate memory.
struct ChildPlan {
  const SpawnOptions& options;
  std::vector<char*> argv;
  std::vector<char*> environment;
  int stdio[3];
  int error_fd;
  pid_t parent;
  std::string oom_score;  // empty: not changed
};

std::vector<char*> PointersTo(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void ResetSignals(const std::vector<int>& ignored) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
  for (const int number : ignored) signal(number, SIG_IGN);
  // Last: one that is pending is dropped if it is ignored.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void Fail(const ChildPlan& plan, ChildError::Step step) {
  const ChildError error{step, errno};
  // If even this write fails, the parent sees a child that exits with 126 at once.
  const ssize_t written = write(plan.error_fd, &error, sizeof(error));
  _exit(written == sizeof(error) ? 127 : 126);
}

// Moves the descriptors to 0, 1 and 2. They are first copied to numbers above these, since dup2
// could overwrite one that is still needed.
bool PlaceStdio(const ChildPlan& plan) {
  int copies[3];
  for (int i = 0; i < 3; ++i) {
    copies[i] = fcntl(plan.stdio[i], F_DUPFD_CLOEXEC, 3);
    if (copies[i] < 0) return false;
  }
  for (int i = 0; i < 3; ++i) {
    if (dup2(copies[i], i) < 0) return false;
  }
  // Marks all other descriptors close-on-exec, including those that a library has opened without
  // O_CLOEXEC. Kernels before 5.11 do not support this; there the latter are inherited.
  syscall(SYS_close_range, 3u, ~0u, kCloseRangeCloexec);
  return true;
}

// Best effort: a failure here must not keep the program from starting.
void SetOomScore(const std::string& score) {
  if (score.empty()) return;
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  [[maybe_unused]] const ssize_t written = write(fd, score.data(), score.size());
  close(fd);
}

void DieWith(pid_t parent, int death_signal) {
  if (death_signal == 0) return;
  prctl(PR_SET_PDEATHSIG, death_signal);
  // If the parent died before that call, no signal will be sent.
  if (getppid() != parent) _exit(126);
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  const SpawnOptions& options = plan.options;
  if (options.group == SpawnOptions::Group::kNewGroup) setpgid(0, 0);
  if (options.group == SpawnOptions::Group::kNewSession) setsid();
  DieWith(plan.parent, options.death_signal);
  ResetSignals(options.ignored_signals);
  if (!PlaceStdio(plan)) Fail(plan, ChildError::kStdio);
  RestoreLimits();
  SetOomScore(plan.oom_score);
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0) {
    Fail(plan, ChildError::kDirectory);
  }
  char** environment =
      options.environment.has_value() ? const_cast<char**>(plan.environment.data()) : environ;
  execvpe(options.file.c_str(), plan.argv.data(), environment);
  Fail(plan, ChildError::kExecute);
}

absl::Status Describe(const ChildError& error, const SpawnOptions& options) {
  switch (error.step) {
    case ChildError::kDirectory:
      return absl::ErrnoToStatus(error.error,
                                 absl::StrCat("can't enter ", options.working_directory));
    case ChildError::kExecute:
      return absl::ErrnoToStatus(error.error, absl::StrCat("can't execute ", options.file));
    case ChildError::kStdio:
      break;
  }
  return absl::ErrnoToStatus(error.error, "can't set up a process's stdio");
}

// Forks with all signals blocked, so that no handler of the parent runs in the child before the
// child has reset the signals. `child` does not return.
template <typename Child>
pid_t ForkChild(const Child& child) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) child();
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

// A descriptor that becomes readable at the process's end; invalid if there is none, with the
// reason in errno.
Fd OpenPidfd(pid_t pid) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

absl::Status CantWatch(int error) {
  // System call filters (seccomp) usually answer EPERM to calls that they do not know.
  if (error == ENOSYS || error == EPERM) {
    return absl::UnimplementedError(
        absl::StrCat("can't watch processes here (pidfd_open: ", std::strerror(error),
                     "): Linux 5.4 or newer is needed, and a container's seccomp profile that "
                     "allows pidfd_open, pidfd_send_signal and waitid"));
  }
  return absl::ErrnoToStatus(error, "can't watch a child process (pidfd_open)");
}

}  // namespace

// First checks with this process whether pidfds work: otherwise a child without a pidfd would have
// to be killed after it has already run for a moment.
template <typename Child>
absl::StatusOr<Process> Process::Start(const Child& child) {
  if (!OpenPidfd(getpid()).valid()) return CantWatch(errno);
  const pid_t pid = ForkChild(child);
  if (pid < 0) return absl::ErrnoToStatus(errno, "can't fork");
  Fd pidfd = OpenPidfd(pid);
  if (pidfd.valid()) return Process(pid, std::move(pidfd));
  const int error = errno;
  // By its number, which can't be reused before the child is reaped.
  kill(pid, SIGKILL);
  (void)TEMP_FAILURE_RETRY(waitpid(pid, nullptr, 0));
  return CantWatch(error);
}

absl::StatusOr<Process> Process::Spawn(const SpawnOptions& options) {
  Fd null;
  if (options.stdin_fd < 0) null.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  ChildPlan plan{options, PointersTo(options.argv), {}, {}, errors.write.get(), getpid(), ""};
  if (options.oom_score_more != 0) plan.oom_score = RaisedOomScore(options.oom_score_more);
  if (options.environment.has_value()) plan.environment = PointersTo(*options.environment);
  plan.stdio[0] = options.stdin_fd >= 0 ? options.stdin_fd : null.get();
  plan.stdio[1] = options.stdout_fd >= 0 ? options.stdout_fd : STDOUT_FILENO;
  plan.stdio[2] = options.stderr_fd >= 0 ? options.stderr_fd : STDERR_FILENO;

  ASSIGN_OR_RETURN(Process process, Start([&plan] { RunChild(plan); }));
  // The pipe is close-on-exec: the read below returns 0 bytes once the program is executed, and a
  // ChildError if a step before that fails. The parent's write end must be closed for that.
  errors.write.reset();
  ChildError error;
  const ssize_t got = TEMP_FAILURE_RETRY(read(errors.read.get(), &error, sizeof(error)));
  if (got == sizeof(error)) return Describe(error, options);
  return process;
}

absl::StatusOr<Process> Process::Fork(const std::function<int()>& body, int death_signal,
                                      const std::vector<int>& ignored_signals) {
  const pid_t parent = getpid();
  return Start([&] {
    DieWith(parent, death_signal);
    ResetSignals(ignored_signals);
    exit(body());
  });
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}

Process::~Process() {
  if (pid_ == 0) return;
  Signal(SIGKILL);
  Wait();
}

void Process::Signal(int signal) const {
  syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

void Process::SignalGroup(int signal) const { kill(-pid_, signal); }

std::optional<ExitStatus> Process::PeekExit() const {
  siginfo_t info = {};
  const int rc = waitid(kByPidfd, pidfd_.get(), &info, WEXITED | WNOHANG | WNOWAIT);
  if (rc == 0 && info.si_pid == 0) return std::nullopt;
  ExitStatus status;
  if (rc != 0) return status;
  if (info.si_code == CLD_EXITED) {
    status.exit_code = info.si_status;
  } else {
    status.signal = info.si_status;
    status.core_dumped = info.si_code == CLD_DUMPED;
  }
  return status;
}

ExitStatus Process::Wait() {
  siginfo_t info = {};
  // First waits without reaping, so that PeekExit reads the status; then reaps.
  (void)TEMP_FAILURE_RETRY(waitid(kByPidfd, pidfd_.get(), &info, WEXITED | WNOWAIT));
  const ExitStatus status = PeekExit().value_or(ExitStatus());
  (void)TEMP_FAILURE_RETRY(waitid(kByPidfd, pidfd_.get(), &info, WEXITED));
  pid_ = 0;
  return status;
}

absl::StatusOr<std::string> FindExecutable(const std::string& name, const std::string& path,
                                           const std::string& directory) {
  std::vector<std::string> candidates;
  if (absl::StrContains(name, '/')) {
    candidates.push_back(name);
  } else {
    for (absl::string_view entry : absl::StrSplit(path, ':')) {
      candidates.push_back(absl::StrCat(entry.empty() ? "." : entry, "/", name));
    }
  }
  absl::Status result = absl::NotFoundError(absl::StrCat("command not found: ", name));
  for (std::string& candidate : candidates) {
    if (candidate[0] != '/') candidate = absl::StrCat(directory, "/", candidate);
    struct stat info;
    if (stat(candidate.c_str(), &info) != 0) continue;
    if (S_ISREG(info.st_mode) && access(candidate.c_str(), X_OK) == 0) return candidate;
    result = absl::PermissionDeniedError(absl::StrCat("not an executable file: ", candidate));
  }
  return result;
}

}  // namespace hvd::os
