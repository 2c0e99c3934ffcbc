// The agents' streams, as events and effects.
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

namespace hvd {

class AgentStream;

// Knows which agents are attached and translates between agent.proto and events.h. Thread-safe.
// Must outlive the gRPC server it is registered with.
class AgentService final : public pb::Agent::CallbackService {
 public:
  // `post` hands an event to the machine; it may be called from any of gRPC's threads and must not
  // block.
  AgentService(std::string job_id, std::function<void(Event)> post);

  grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand>* Attach(
      grpc::CallbackServerContext* context) override;

  // Carry an effect out. One for an agent that is gone is ignored: the machine is being told.
  void Handle(const StartWorkerEffect& effect);
  void Handle(const StopWorkersEffect& effect);
  void Handle(const EndJobEffect& effect);

  // From now on nobody can attach.
  void JobOver();

  // Ends all streams, and every later one, with `status`, after what is queued for them has gone
  // out.
  void Close(const absl::Status& status);

 private:
  friend class AgentStream;
  using StreamPtr = std::shared_ptr<AgentStream>;

  // Takes the agent in, with the welcome as its first command, or says why not.
  absl::Status Welcome(const pb::AgentHello& hello, const StreamPtr& stream);
  void Received(const std::string& host, const pb::AgentMessage& message);
  // The stream of an agent that was welcomed has ended.
  void Left(const std::string& host, Incarnation agent, const std::string& reason);
  void Forget(const StreamPtr& stream);
  void Send(const std::string& host, Incarnation agent, pb::AgentCommand command);

  struct Attached {
    Incarnation agent;
    StreamPtr stream;
  };

  const std::string job_id_;
  const std::function<void(Event)> post_;
  absl::Mutex mu_;
  std::set<StreamPtr> streams_ ABSL_GUARDED_BY(mu_);               // all, also those not attached
  std::map<std::string, Attached> attached_ ABSL_GUARDED_BY(mu_);  // by host
  bool job_over_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mu_);  // not OK: closed
};

}  // namespace hvd

#endif  // RENDEZVOUS_SERVER_AGENT_SERVICE_H_
