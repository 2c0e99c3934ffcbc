#include "launcher/agent/guard.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "base/process_tree.h"

namespace hvd {
namespace {

// The agent alone holds the pipes to the launcher, so that each side sees the other's end at once.
void LetGoOfPipes() {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), STDIN_FILENO);
  dup2(null.get(), STDOUT_FILENO);
}

// Waits until the agent has ended, and reaps the orphans that come here meanwhile.
ExitStatus AwaitAgent(const Process& agent, const sigset_t& signals) {
  for (;;) {
    const std::optional<ExitStatus> status = agent.PeekExit();
    if (status.has_value()) return *status;
    siginfo_t info;
    const int signal = TEMP_FAILURE_RETRY(sigwaitinfo(&signals, &info));
    if (signal != SIGCHLD) {
      agent.Signal(signal);
      continue;
    }
    for (const pid_t child : ChildrenOf(getpid())) {
      if (child != agent.pid()) waitpid(child, nullptr, WNOHANG);
    }
  }
}

}  // namespace

int RunGuard(SpawnOptions agent) {
  // Blocked before there is a child, so that no news of it is lost.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  BecomeSubreaper();

  agent.stdin_fd = STDIN_FILENO;
  agent.group = SpawnOptions::Group::kInherit;
  agent.death_signal = SIGHUP;
  absl::StatusOr<Process> process = Process::Spawn(agent);
  if (!process.ok()) {
    fprintf(stderr, "%s\n", std::string(process.status().message()).c_str());
    return 1;
  }
  LetGoOfPipes();
  const ExitStatus status = AwaitAgent(*process, signals);
  KillDescendants();
  return status.signal != 0 ? 128 + status.signal : status.exit_code;
}

}  // namespace hvd
