// A gRPC server for any number of jobs. The token of each call selects the job.
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
class JobRouter {
 public:
  JobRouter();
  // Closes all jobs and waits for the calls in progress.
  ~JobRouter();

  // Serves at `listen` (numeric "address:port"), with this certificate. Call once.
  // Errors:
  //   - InvalidArgument: an address or the credentials are not valid.
  //   - Unavailable: an address can't be listened on; says which and why.
  absl::Status Listen(const std::vector<std::string>& listen,
                      const security::PeerCredentials& credentials, absl::Duration patience);

  // The addresses listened on, with their real ports, in the order of Listen's argument. REQUIRES:
  // Listen has succeeded.
  const std::vector<std::string>& addresses() const { return listener_->addresses(); }

  // Announces the token of a job that will be added later. Until then its calls fail with
  // Unavailable, so that clients retry, and not with "no such job".
  void Await(const std::string& token);
  // Revokes Await: the job will not be added.
  void AwaitNoMore(const std::string& token);

  // Routes calls with this token to the job from now on. REQUIRES: no other job has the token.
  std::shared_ptr<Job> Add(std::string token, std::unique_ptr<Job> job);

  // The further treatment of a removed job's token: forgotten, or as after Await.
  enum class Token { kForget, kAwait };

  // Closes the job and accepts no more calls for it. REQUIRES: the caller is not the job's thread.
  void Remove(const std::shared_ptr<Job>& job, Token token = Token::kForget);

  std::vector<std::shared_ptr<Job>> jobs();

 private:
  class RendezvousRouter;
  class AgentRouter;
  struct Entry {
    std::string token;
    std::shared_ptr<Job> job;  // null: the job is awaited
  };

  // Returns nullopt if no job has this token, null if the job is awaited.
  std::optional<std::shared_ptr<Job>> Find(absl::string_view token);
  // Errors: the status for the client.
  absl::StatusOr<std::shared_ptr<Job>> JobOf(const grpc::CallbackServerContext& context);
  size_t ConnectionsNeeded(const std::string& token);
  void Erase(absl::string_view token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Destroys the removed jobs that gRPC no longer uses.
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
