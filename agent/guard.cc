#include "agent/guard.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/inspection/process_state.h"
#include "agent/protocol/agent_protocol.h"
#include "base/failpoint/failpoint.h"
#include "base/os/process.h"
#include "base/os/process_tree.h"
#include "base/os/signals.h"
#include "base/text/duration_text.h"

namespace hvd::agent {
namespace {

// Only the agent may hold the pipes to the launcher: an end that the guard kept open would hide
// from the launcher that the agent has closed it.
void LetGoOfPipes() {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null.get(), STDIN_FILENO);
  dup2(null.get(), STDOUT_FILENO);
}

// The reader of stderr may have ended, while this process has still to see to the agent's end.
void BlockBrokenPipe() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigprocmask(SIG_BLOCK, &pipe, nullptr);
}

void ReapOrphans(const os::Process& agent) {
  for (const pid_t child : os::ChildrenOf(getpid())) {
    if (child != agent.pid()) waitpid(child, nullptr, WNOHANG);
  }
}

// Waits until the agent has ended, and passes signals on to it. The kernel sends SIGCHLD also when
// the agent is stopped and when it is continued; so each wait knows whether the agent is stopped,
// and only then has a timeout.
os::ExitStatus AwaitAgent(const os::Process& agent, const sigset_t& signals,
                          absl::Duration stopped_patience) {
  const timespec patience = absl::ToTimespec(stopped_patience);
  for (;;) {
    const std::optional<os::ExitStatus> status = agent.PeekExit();
    if (status.has_value()) return *status;
    siginfo_t info;
    const bool stopped = inspection::IsStopped(agent.pid());
    const int signal =
        TEMP_FAILURE_RETRY(sigtimedwait(&signals, &info, stopped ? &patience : nullptr));
    if (signal == SIGCHLD) {
      ReapOrphans(agent);
    } else if (signal > 0) {
      agent.Signal(signal);
    } else {
      agent.Signal(SIGKILL);
      fprintf(stderr, "%s was stopped (SIGSTOP) for %s, and is killed by its guard\n",
              protocol::kAgentProgram, text::DurationText(stopped_patience).c_str());
    }
  }
}

}  // namespace

int RunGuard(const std::function<int()>& agent, absl::Duration stopped_patience) {
  // Blocked before the fork, so that no SIGCHLD is lost; sigtimedwait takes the pending signals.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  os::AddUnlessIgnored(signals, SIGHUP);
  os::AddNotices(signals);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  BlockBrokenPipe();
  os::BlockNotices();
  os::BecomeSubreaper();

  std::vector<int> ignored;
  if (os::IsIgnored(SIGHUP)) ignored.push_back(SIGHUP);
  absl::StatusOr<os::Process> process = os::Process::Fork(agent, /*death_signal=*/SIGTERM, ignored);
  if (!process.ok()) {
    fprintf(stderr, "%s: %s\n", protocol::kAgentProgram,
            std::string(process.status().message()).c_str());
    return protocol::kAgentRefusedExitCode;
  }
  LetGoOfPipes();
  FAILPOINT("agent.guard.forked");
  const os::ExitStatus status = AwaitAgent(*process, signals, stopped_patience);
  FAILPOINT("agent.guard.ended");
  os::KillDescendants();
  return status.signal != 0 ? 128 + status.signal : status.exit_code;
}

}  // namespace hvd::agent
