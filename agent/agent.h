// The per-host agent: receives the job's bootstrap message, attaches to the rendezvous daemon, and
// runs the workers that the daemon requests.
#ifndef AGENT_AGENT_H_
#define AGENT_AGENT_H_

#include <unistd.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/attachment.h"
#include "agent/copies/commit_keeper.h"
#include "agent/copies/commit_source.h"
#include "agent/copies/held_commits.h"
#include "agent/output/agent_output.h"
#include "agent/process/adoption.h"
#include "agent/route_finder.h"
#include "agent/worker_set.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/net/interfaces.h"
#include "base/net/wire.h"
#include "proto/agent.pb.h"
#include "rendezvous/bootstrap/bootstrap_socket.h"
#include "rendezvous/client/agent_link.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/transport/patience.h"

namespace hvd::agent {

// Blocks the signals that an Agent takes through its loop, SIGPIPE and SIGXFSZ. REQUIRES: no other
// thread has been started yet.
void BlockAgentSignals();

struct AgentSettings {
  // True if the agent runs without a launcher: it then reports the job's end itself and exits with
  // the job's exit code.
  bool alone = false;
  // The target of all connections to the daemon: "name:port" if the address behind the name may
  // change, or the comma-separated addresses of several daemons. Empty: use the address found by
  // the route search.
  std::string daemon_name;
  absl::Duration start_timeout;  // how long to wait for a daemon; zero: one must be running
  absl::Duration drain_grace;    // of the drain that SIGTERM requests; zero: the job's own
  // The additional time for the daemon to complete the drain after its grace period has passed.
  absl::Duration drain_margin = absl::Seconds(5);
  absl::Duration check_interval = absl::Seconds(1);  // see WorkerSet
  // The adopted process, which is then the only worker. Borrowed. nullptr: workers are children.
  process::Adoption* adoption = nullptr;
};

// The agent's main state machine: waiting for the bootstrap, searching for a route to the daemon,
// attached, ending.
//
// The agent ends with the job, when the launcher is gone, when the daemon is lost, or on SIGTERM,
// SIGINT or SIGHUP. In each case all processes that it started have ended when Run returns, and an
// adopted process has left the job. In an elastic job the first SIGTERM or SIGHUP only asks the
// daemon to drain this host; the daemon then ends this agent's part in the job.
//
// Not thread-safe: belongs to the thread that calls Run.
class Agent {
 public:
  using OpenLink = std::function<std::unique_ptr<rendezvous::client::AgentLink>(
      const std::string& address, const rendezvous::security::PeerCredentials& credentials,
      const pb::AgentHello& hello, rendezvous::client::AgentLink::Callbacks callbacks,
      const rendezvous::transport::Patience& patience)>;

  // `output` is borrowed. REQUIRES: BlockAgentSignals, BecomeSubreaper, no other children.
  Agent(EventLoop& loop, output::AgentOutput& output, OpenLink open_link, AgentSettings settings);

  // Returns the exit code: 0 after a regular end of the job, kAgentRefusedExitCode after Refuse,
  // 128 + the number of a signal that ended the agent, the job's exit code with
  // AgentSettings::alone, else 1.
  int Run();

  // The input events. Call them from the loop: Begin or Refuse first, and only once; LauncherGone
  // at any time.
  void Begin(const pb::AgentBootstrap& bootstrap);
  void LauncherGone() { Quit(phase_ == Phase::kDetaching ? 0 : 1); }
  // Sends `message`, one line that names the problem, to the launcher; then ends the agent.
  void Refuse(const std::string& message);

 private:
  // The agent's part in the job:
  //   kWorking --EndJob--> kEnding --no worker is left--> kDetaching
  // Refuse, a lost daemon or a signal ends the agent from every phase.
  enum class Phase {
    kWorking,    // from the beginning
    kEnding,     // workers are being stopped, and none is started any more
    kDetaching,  // all reports were sent to the daemon
  };

  // ---- Attaching and working: agent.cc
  void FindRoute();
  void OnRoute(absl::StatusOr<Route> route);
  absl::Status Attach(const Route& route);
  absl::StatusOr<std::string> ChooseOwnAddress(
      const std::vector<net::InterfaceAddress>& interfaces) const;
  void FollowOwnAddress();
  std::unique_ptr<Attachment> OpenAttachment();
  rendezvous::transport::Patience PatienceWithDaemon() const;
  void ReserveStorePort();
  std::string TargetOf(const Route& route) const;
  rendezvous::bootstrap::BootstrapSocket::Response AnswerWorker(const pb::WorkerHello& hello,
                                                                pid_t asker);
  void HandOver(uint64_t worker_id, pid_t asker,
                rendezvous::bootstrap::BootstrapSocket::Response& response);
  void OnCommand(const pb::AgentCommand& command);
  void OnWelcome(const pb::AgentWelcome& welcome);
  Attachment::Memory Remember();

  // ---- Copies of commits: agent_copies.cc
  void OpenCommitSource();
  std::string CommitAddress() const;
  void BeginCopies(const std::string& job);
  void OnKeep(const pb::KeepCommits& keep);
  void OnKept(const absl::Status& status);
  void OnWorkerReport(pb::AgentMessage message);
  void TellLeft();
  uint64_t NewestCommit();

  // ---- A rehearsal: agent_faults.cc
  void OnFault(const pb::Fault& fault);
  void AwaitHarm(const pb::Fault& fault);
  void EndHarm(const pb::Fault& fault);
  void AnswerFault(uint64_t fault, const std::string& problem);
  void NoticePreemption(const pb::Fault& fault);
  void LoseHost();

  // ---- Ending: agent_end.cc
  void OnSignal();
  void PassOn(int notice);
  bool DrainBySignal(int signal, bool by_guard);
  void Drain(const std::string& reason);
  // Whether the daemon was asked to drain this host. Stays true when the job ends.
  bool draining() const { return !drain_reason_.empty(); }
  void LeaveBySignal(int signal);
  bool GuardHasGone() const;
  std::string WhyLeaving(int signal) const;
  void OnWithdrawn();
  pb::AgentMessage DrainMessage() const;
  void OnEndJob(const pb::EndJob& end);
  void OnWorkersEmpty();
  void OnDetached(const absl::Status& status);
  void OnAttachmentClosed(const absl::Status& status);
  void OnOutputIdle();
  void Say(const std::string& text);
  // Ends once the launcher has taken everything, or its time for that is over.
  void QuitWhenFlushed(int exit_code);
  void Quit(int exit_code);
  void KillWorkers();

  EventLoop& loop_;
  output::AgentOutput& output_;
  const OpenLink open_link_;
  const AgentSettings settings_;
  Fd signals_;
  pb::AgentBootstrap bootstrap_;
  LaunchPlan plan_;
  std::shared_ptr<const net::TlsContext> daemons_tls_;  // null: there is one address
  Route route_;
  // The target of all connections to the daemon, made by this process or by its workers.
  std::string daemon_target_;
  absl::Duration patience_;       // how long to wait for a daemon that does not answer
  bool daemon_may_come_ = false;  // start_timeout has not passed
  Fd store_port_;  // reserves the port on which torch.distributed's store listens if rank 0 is here
  size_t commit_copy_mbit_ = 0;
  copies::Trust trust_;
  std::string store_address_;                            // of store_port_; empty: none
  std::unique_ptr<copies::CommitSource> commit_source_;  // null: no copies
  bool serves_copies_ = false;                           // commit_source_ has begun
  std::unique_ptr<copies::CommitKeeper> commit_keeper_;  // null: not elastic, or no copies
  uint64_t keep_turn_ = 0;                               // counts the commands to keep
  std::optional<copies::HeldCommits> held_;              // from the welcome to an elastic job on
  uint64_t told_commit_ = 0;                             // the newest that the daemon knows of
  std::optional<RouteFinder> route_finder_;
  std::unique_ptr<rendezvous::bootstrap::BootstrapSocket> socket_;
  std::optional<WorkerSet> workers_;
  std::unique_ptr<Attachment> attachment_;
  std::optional<pb::AgentWelcome> welcome_;
  std::string drain_reason_;
  uint64_t awaited_fault_ = 0;  // that a worker is to do to itself; 0: none
  absl::Duration drain_grace_;  // of the drain that this agent asks for; zero: the job's own
  int terms_[2] = {0, 0};    // SIGTERMs that request a drain: [0] from others, [1] from the guard
  bool hurried_ = false;     // the drain is not to wait for the next commit
  std::set<int> passed_on_;  // the notices of the last moments
  Phase phase_ = Phase::kWorking;
  int end_code_ = 0;  // the exit code that EndJob calls for
  const pid_t guard_ = getppid();
  bool leaving_ = false;  // a signal ends the agent, and the daemon is being told
  bool quit_when_flushed_ = false;
  int exit_code_ = 1;
};

}  // namespace hvd::agent

#endif  // AGENT_AGENT_H_
