// The launcher's handle of an agent, which is a local child process or the command that runs the
// agent on another host.
#ifndef LAUNCHER_SPAWN_AGENT_PROCESS_H_
#define LAUNCHER_SPAWN_AGENT_PROCESS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/spawn/host_launcher.h"
#include "proto/agent.pb.h"

namespace hvd::launcher::spawn {

// The host on which to start an agent, and how to start it.
struct AgentTarget {
  std::string host;    // as the user wrote it
  bool local = false;  // on this machine
  std::shared_ptr<const HostLauncher> launcher;
};

// How an agent process (or its launcher's command) ended.
struct AgentExit {
  int exit_code = 0;  // if signal is 0
  int signal = 0;
  std::string stderr_text;  // the last 4 KiB of stderr: of the agent, its shell or the command
};

// Thread-safe. Callbacks come from one thread, in order; they must not block for long and must not
// destroy the object.
class AgentProcess {
 public:
  struct Callbacks {
    // The agent has accepted the bootstrap and found the command. `warning` is one line for the
    // user, or empty.
    std::function<void(const std::string& warning)> on_ready;
    std::function<void(const std::string&)> on_refusal;  // one line for the user
    std::function<void(pb::WorkerOutput)> on_output;
    std::function<void(const AgentExit&)> on_exit;  // last callback of all; output is complete
  };

  // Starts the agent and writes `bootstrap` to its stdin. The process gets its own session (Ctrl-C
  // does not reach it) and dies with this process.
  // Errors:
  //   - NotFound: the launcher's command is not there, or no horovod-agent beside this program.
  //   - Internal: fork or pipe failed.
  static absl::StatusOr<std::unique_ptr<AgentProcess>> Start(const AgentTarget& target,
                                                             const pb::AgentBootstrap& bootstrap,
                                                             Callbacks callbacks);
  // Ends the agent at once (see Kill) and waits for the last callback.
  virtual ~AgentProcess() = default;

  // Closes the agent's stdin, on which it stops its workers and exits. Does not wait.
  virtual void CloseInput() = 0;

  // Sends SIGKILL to the local process. An agent on a remote host ends because its stdin is closed.
  virtual void Kill() = 0;
};

// One line for the user about an agent that ended before it was ready: the launcher's explanation
// of its last lines, or that the program is missing there.
std::string ExplainEarlyExit(const AgentTarget& target, const AgentExit& exit);

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_AGENT_PROCESS_H_
