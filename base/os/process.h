// Owned child processes, which are killed and reaped by their owner.
#ifndef BASE_OS_PROCESS_H_
#define BASE_OS_PROCESS_H_

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::os {

struct SpawnOptions {
  std::string file;               // with a '/': a path; else searched for in this process's PATH
  std::vector<std::string> argv;  // argv[0] included
  std::optional<std::vector<std::string>>
      environment;                // "NAME=value", complete; nullopt: inherited
  std::string working_directory;  // empty: this process's own
  int stdin_fd = -1;              // borrowed; -1: /dev/null
  int stdout_fd = -1;             // borrowed; -1: this process's own
  int stderr_fd = -1;             // as stdout_fd
  enum class Group { kInherit, kNewGroup, kNewSession } group = Group::kNewGroup;
  int death_signal = SIGKILL;  // sent to the child when the *thread* that spawned it ends; 0: none
  // Added to this process's oom_score_adj for the child, so that the kernel prefers to kill the
  // child when memory runs out. 0 to 1000.
  int oom_score_more = 0;
  // The child ignores these signals, and so do the programs that it starts.
  std::vector<int> ignored_signals;
};

struct ExitStatus {
  int exit_code = 0;  // if signal is 0
  int signal = 0;
  bool core_dumped = false;
};

// Owns one child. Not thread-safe, but Signal may be called from any thread while the object lives.
class Process {
 public:
  // Forks and executes. In the child all signals have their default actions, except the ignored
  // ones, none is blocked, and only stdio is open. No process is left after an error.
  // Errors:
  //   - NotFound, PermissionDenied, other codes of errno: the program can't be executed, or the
  //     directory can't be entered; says which.
  //   - ResourceExhausted, Unavailable, Internal: no process or descriptor available.
  //   - Unimplemented: the kernel has no pidfds, or a system call filter (seccomp) forbids them.
  static absl::StatusOr<Process> Spawn(const SpawnOptions& options);

  // Forks; the child runs `body` and exits with its result. In the child all signals have their
  // default actions, except `ignored_signals`, and none is blocked; descriptors are shared, and
  // `death_signal` is as in SpawnOptions.
  // REQUIRES: this process has no other threads.
  // Errors:
  //   - ResourceExhausted, Unavailable, Internal, Unimplemented: as Spawn.
  static absl::StatusOr<Process> Fork(const std::function<int()>& body, int death_signal,
                                      const std::vector<int>& ignored_signals = {});

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) = delete;
  // Kills (SIGKILL) and reaps the child, unless it was reaped before.
  ~Process();

  pid_t pid() const { return pid_; }
  // Becomes readable when the process has exited. Borrowed.
  int pidfd() const { return pidfd_.get(); }

  // Signals the process; does nothing if it has exited.
  void Signal(int signal) const;
  // Signals the child's process group. REQUIRES: the child was spawned with kNewGroup or
  // kNewSession and is not yet reaped, so that the number still belongs to that group.
  void SignalGroup(int signal) const;

  // The exit status, without reaping the child; nullopt: it still runs.
  std::optional<ExitStatus> PeekExit() const;
  // Waits without a time limit for the child's end and reaps it. REQUIRES: not yet reaped.
  ExitStatus Wait();

 private:
  template <typename Child>
  static absl::StatusOr<Process> Start(const Child& child);
  Process(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

  pid_t pid_;  // 0: reaped, or moved away
  Fd pidfd_;
};

// The path that executing `name` would run: searched in `path` (colon-separated) unless `name` has
// a '/'; relative to `directory`.
// Errors:
//   - NotFound: there is no such file.
//   - PermissionDenied: there is such a file, but it can't be executed.
absl::StatusOr<std::string> FindExecutable(const std::string& name, const std::string& path,
                                           const std::string& directory);

}  // namespace hvd::os

#endif  // BASE_OS_PROCESS_H_
