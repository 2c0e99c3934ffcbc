// The service of the agents' streams: translates messages to events, and effects to commands.
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
  pb::AgentWelcome welcome;  // for every agent that is accepted
  std::function<void(membership::Event)>
      post;  // to the machine; from any of gRPC's threads; must not block
};

// Keeps the attached agents and translates between agent.proto and events.h. Thread-safe. Must
// outlive the gRPC server it is registered with.
class AgentService final : public pb::Agent::CallbackService {
 public:
  explicit AgentService(AgentServiceOptions options);

  grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand>* Attach(
      grpc::CallbackServerContext* context) override;

  // Carry an effect out. One for an agent that is gone is ignored: the machine gets an event.
  void Handle(const membership::StartWorkerEffect& effect);
  void Handle(const membership::StopWorkersEffect& effect);
  void Handle(const membership::SampleWorkerEffect& effect);
  void Handle(const membership::KeepCommitsEffect& effect);
  void Handle(const membership::HoldHostEffect& effect);
  void Handle(const membership::EndJobEffect& effect);

  // From now on nobody can attach.
  void JobOver();

  // Ends all streams, and every later one, with `status`, after what is queued for them has gone
  // out.
  void Close(const absl::Status& status);

  // Whether a stream may still call into this object.
  bool busy();

 private:
  friend class AgentStream;
  using StreamPtr = std::shared_ptr<AgentStream>;

  // Accepts the agent, with the welcome as its first command, or returns the reason against it. An
  // agent that attaches again before its earlier stream was seen to end replaces that stream,
  // unnoticed by the job.
  absl::Status Welcome(const pb::AgentHello& hello, const StreamPtr& stream);
  absl::Status TakePlace(const pb::AgentHello& hello, const StreamPtr& stream, StreamPtr& replaced);
  // A message of an agent that was welcomed, and the end of its stream. A stream that was replaced
  // has no effect.
  void Received(const AgentStream& stream, const std::string& host,
                const pb::AgentMessage& message);
  void Left(const AgentStream& stream, const std::string& host, const std::string& reason);
  void Forget(const StreamPtr& stream);
  // Whether the worker that a message is about, if any, may run on that host: messages about
  // another host's workers are ignored. The hosts of workers from before the daemon's restart are
  // not known.
  bool MaySpeakFor(const std::string& host, const pb::AgentMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Send(const std::string& host, Incarnation agent, pb::AgentCommand command);

  struct Attached {
    Incarnation agent;
    StreamPtr stream;
  };

  const AgentServiceOptions options_;
  absl::Mutex mu_;
  std::set<StreamPtr> streams_ ABSL_GUARDED_BY(mu_);               // all, also those not attached
  std::map<std::string, Attached> attached_ ABSL_GUARDED_BY(mu_);  // by host
  std::map<WorkerId, std::string> host_of_ ABSL_GUARDED_BY(mu_);   // until they have exited
  bool job_over_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mu_);  // not OK: closed
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_AGENT_SERVICE_H_
