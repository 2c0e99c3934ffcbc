// The agent of one host: takes the job's bootstrap from the launcher, attaches to the rendezvous
// daemon, and runs workers as told.
#ifndef LAUNCHER_AGENT_AGENT_H_
#define LAUNCHER_AGENT_AGENT_H_

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "launcher/agent/agent_input.h"
#include "launcher/agent/bootstrap_socket.h"
#include "launcher/agent/frame_writer.h"
#include "launcher/agent/route_finder.h"
#include "launcher/agent/worker_set.h"
#include "proto/agent.pb.h"
#include "rendezvous/client/agent_link.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd {

// Blocks the signals that an Agent takes through its loop, and SIGPIPE. REQUIRES: no other thread
// has been started yet.
void BlockAgentSignals();

// Belongs to the thread that calls Run. The phases: bootstrap awaited, route looked for, attached,
// ending. Whatever ends it (the end of the job, a closed stdin, a lost daemon, SIGTERM, SIGINT or
// SIGHUP), no process that it started is left when Run returns.
class Agent {
 public:
  using OpenLink = std::function<std::unique_ptr<AgentLink>(
      const std::string& address, const PeerCredentials& credentials, const pb::AgentHello& hello,
      AgentLink::Callbacks callbacks)>;

  // `input` and `output` are borrowed. REQUIRES: BlockAgentSignals, BecomeSubreaper, no other
  // children.
  Agent(EventLoop& loop, int input, int output, OpenLink open_link);

  // Returns the exit code: 0 the job was ended in good order, kAgentRefusedExitCode a refusal was
  // sent, 128 + a signal's number, else 1.
  int Run();

 private:
  void OnSignal();
  void OnBootstrap(const pb::AgentBootstrap& bootstrap);
  void OnRoute(absl::StatusOr<Route> route);
  absl::Status Attach(const Route& route);
  pb::WorkerBootstrap AnswerWorker(uint64_t worker_id) const;
  void OnCommand(const pb::AgentCommand& command);
  void OnLinkClosed(const absl::Status& status);
  void OnWorkersEmpty();
  void OnOutputIdle();

  // One line to the launcher, then the end.
  void Refuse(const std::string& message);
  // Ends once the launcher has taken everything, or has had enough time to.
  void QuitWhenFlushed(int exit_code);
  void Quit(int exit_code);
  void KillWorkers();

  EventLoop& loop_;
  const OpenLink open_link_;
  Fd signals_;
  FrameWriter writer_;
  AgentInput input_;
  pb::AgentBootstrap bootstrap_;
  LaunchPlan plan_;
  Route route_;
  std::optional<RouteFinder> route_finder_;
  std::unique_ptr<BootstrapSocket> socket_;
  std::optional<WorkerSet> workers_;
  std::unique_ptr<AgentLink> link_;
  bool welcomed_ = false;
  bool ending_ = false;     // EndJob has come
  bool link_done_ = false;  // everything was said to the daemon
  bool quit_when_flushed_ = false;
  int exit_code_ = 1;
};

}  // namespace hvd

#endif  // LAUNCHER_AGENT_AGENT_H_
