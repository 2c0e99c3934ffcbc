// The gRPC service for agents: translates their messages to events, and effects to commands.
#ifndef RENDEZVOUS_SERVER_AGENT_SERVICE_H_
#define RENDEZVOUS_SERVER_AGENT_SERVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/agent.grpc.pb.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::server {

class AgentStream;

struct AgentServiceOptions {
  pb::AgentWelcome welcome;  // the first command to every accepted agent
  // Queues an event for the machine. Called from any gRPC thread; must not block.
  std::function<void(membership::Event)> post;
  std::function<absl::Status()> check_room;  // OK, or why nothing may be posted for an agent
  // See ServerOptions.
  std::function<void(const pb::FaultDone&)> on_fault_done;
};

// Holds the streams of the attached agents, and translates between agent.proto and events.h.
// Thread-safe. Must outlive the gRPC server it is registered with.
class AgentService final : public pb::Agent::CallbackService {
 public:
  explicit AgentService(AgentServiceOptions options);

  grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand>* Attach(
      grpc::CallbackServerContext* context) override;

  // Carry out one effect. An effect for an agent that has gone is ignored: HostLost has been posted
  // for it.
  void Handle(const membership::StartWorkerEffect& effect);
  void Handle(const membership::StopWorkersEffect& effect);
  void Handle(const membership::SampleWorkerEffect& effect);
  void Handle(const membership::KeepCommitsEffect& effect);
  void Handle(const membership::HoldHostEffect& effect);
  void Handle(const membership::EndJobEffect& effect);

  // Has all attached agents send the signal to their workers; see SignalWorkers in agent.proto.
  void SignalWorkers(int signal);

  // Sends the fault to the host's agent. Returns whether one is attached.
  bool Harm(const std::string& host, const pb::Fault& fault);

  // The command of the workers, on one line, as the newest agent has told it; empty: unknown.
  std::string command();

  // Rejects every later attempt to attach.
  void JobOver();

  // Ends all streams, and every later one, with `status`. Queued commands are sent first.
  void Close(const absl::Status& status);

  // Whether a stream may still call into this object.
  bool busy();

 private:
  friend class AgentStream;
  using StreamPtr = std::shared_ptr<AgentStream>;

  // Accepts the agent and sends the welcome as its first command, or returns why it is rejected. An
  // agent may attach again before the end of its earlier stream was noticed: the new stream
  // replaces the old one without an event to the machine.
  absl::Status Welcome(const pb::AgentHello& hello, const StreamPtr& stream);
  absl::Status TakePlace(const pb::AgentHello& hello, const StreamPtr& stream, StreamPtr& replaced);
  // Handle a message of an accepted agent and the end of its stream. Both ignore a stream that was
  // replaced. A message that makes no sense is an error, for which the stream must be closed.
  absl::Status Received(const AgentStream& stream, const std::string& host,
                        const pb::AgentMessage& message);
  void Left(const AgentStream& stream, const std::string& host, const std::string& reason);
  void Forget(const StreamPtr& stream);
  // Whether a message may come from that host. False if it is about a worker of another host; true
  // for a worker whose host is unknown, since it was started before a restart of the daemon.
  bool MaySpeakFor(const std::string& host, const pb::AgentMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Send(const std::string& host, Incarnation agent, pb::AgentCommand command);

  struct Attached {
    Incarnation agent;
    StreamPtr stream;
    std::string leaves_for;  // the reason that the agent has given; empty: none
  };

  const AgentServiceOptions options_;
  absl::Mutex mu_;
  // All open streams, including those not attached yet.
  std::set<StreamPtr> streams_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Attached> attached_ ABSL_GUARDED_BY(mu_);  // by host
  // The host of each worker that has not exited.
  std::map<WorkerId, std::string> host_of_ ABSL_GUARDED_BY(mu_);
  std::string command_ ABSL_GUARDED_BY(mu_);
  bool job_over_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mu_);  // not OK: closed
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_AGENT_SERVICE_H_
