// The gRPC server of any number of jobs. Each call's token selects the job.
#ifndef RENDEZVOUS_SERVER_JOB_ROUTER_H_
#define RENDEZVOUS_SERVER_JOB_ROUTER_H_

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server.h"
#include "proto/agent.grpc.pb.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/server/grpc_listener.h"
#include "rendezvous/server/job.h"

namespace hvd::rendezvous::server {

// Thread-safe.
class FrontDoor {
 public:
  FrontDoor();
  // Closes all jobs and waits for what is under way.
  ~FrontDoor();

  // Serves at `listen` (numeric "address:port"), with this certificate. Call once.
  // Errors:
  //   - InvalidArgument: these arguments can't work.
  //   - Unavailable: an address can't be listened on; says which and why.
  absl::Status Listen(const std::vector<std::string>& listen,
                      const security::PeerCredentials& credentials, absl::Duration patience);

  // With their real ports, in the order asked for. REQUIRES: Listen has succeeded.
  const std::vector<std::string>& addresses() const { return listener_->addresses(); }

  // The token is of a job that will be added: until then its callers hear that they are to come
  // again, and not that there is no such job.
  void Await(const std::string& token);
  // It will not be added any more.
  void AwaitNoMore(const std::string& token);

  // From now on calls with this token go to this job. REQUIRES: no other job has the token.
  std::shared_ptr<Job> Add(std::string token, std::unique_ptr<Job> job);

  // What becomes of a removed job's token.
  enum class Token { kForget, kAwait };

  // Closes the job and accepts no more calls for it. Not from the job's own thread.
  void Remove(const std::shared_ptr<Job>& job, Token token = Token::kForget);

  std::vector<std::shared_ptr<Job>> jobs();

 private:
  class RendezvousRouter;
  class AgentRouter;
  struct Entry {
    std::string token;
    std::shared_ptr<Job> job;  // null: it is awaited
  };

  // nullopt: no job has this token.
  std::optional<std::shared_ptr<Job>> Find(absl::string_view token);
  // Errors: what the caller is to hear.
  absl::StatusOr<std::shared_ptr<Job>> JobOf(const grpc::CallbackServerContext& context);
  void Erase(absl::string_view token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops the removed jobs that gRPC has released.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<RendezvousRouter> rendezvous_;
  const std::unique_ptr<AgentRouter> agents_;
  absl::Mutex mu_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::list<std::shared_ptr<Job>> removed_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<GrpcListener> listener_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_JOB_ROUTER_H_
