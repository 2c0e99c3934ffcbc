#include "rendezvous/server/job_router.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"
#include "rendezvous/security/certificates.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/transport/connection.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::server {
namespace {

// At shutdown: the time limit for sending replies and last commands, after which gRPC cancels the
// calls.
constexpr int kShutdownMs = 2000;

// A stream that ends at once, for an agent whose job is awaited, or was removed between the check
// of the token and the start of the stream.
class RefusedStream final : public grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand> {
 public:
  explicit RefusedStream(const absl::Status& why) { Finish(transport::ToGrpcStatus(why)); }
  void OnDone() override { delete this; }
};

}  // namespace

// Forwards each call to the RendezvousService of the job that its token selects.
class JobRouter::RendezvousRouter final : public pb::Rendezvous::CallbackService {
 public:
  explicit RendezvousRouter(JobRouter& router) : router_(router) {}

  grpc::ServerUnaryReactor* JoinWorld(grpc::CallbackServerContext* context,
                                      const pb::JoinWorldRequest* request,
                                      pb::JoinWorldResponse* response) override {
    return Route(&RendezvousService::JoinWorld, context, request, response);
  }
  grpc::ServerUnaryReactor* GetMembers(grpc::CallbackServerContext* context,
                                       const pb::GetMembersRequest* request,
                                       pb::GetMembersResponse* response) override {
    return Route(&RendezvousService::GetMembers, context, request, response);
  }
  grpc::ServerUnaryReactor* WatchEpoch(grpc::CallbackServerContext* context,
                                       const pb::WatchEpochRequest* request,
                                       pb::WatchEpochResponse* response) override {
    return Route(&RendezvousService::WatchEpoch, context, request, response);
  }
  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const pb::ExchangeRequest* request,
                                     pb::ExchangeResponse* response) override {
    return Route(&RendezvousService::Exchange, context, request, response);
  }
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context,
                                   const pb::ReportRequest* request,
                                   pb::ReportResponse* response) override {
    return Route(&RendezvousService::Report, context, request, response);
  }
  grpc::ServerUnaryReactor* ReportStall(grpc::CallbackServerContext* context,
                                        const pb::ReportStallRequest* request,
                                        pb::ReportStallResponse* response) override {
    return Route(&RendezvousService::ReportStall, context, request, response);
  }
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const pb::GetStatusRequest* request,
                                      pb::GetStatusResponse* response) override {
    return Route(&RendezvousService::GetStatus, context, request, response);
  }
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const pb::DrainRequest* request,
                                  pb::DrainResponse* response) override {
    return Route(&RendezvousService::Drain, context, request, response);
  }
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const pb::StopRequest* request,
                                 pb::StopResponse* response) override {
    return Route(&RendezvousService::Stop, context, request, response);
  }

 private:
  template <typename Method, typename Request, typename Response>
  grpc::ServerUnaryReactor* Route(Method method, grpc::CallbackServerContext* context,
                                  const Request* request, Response* response) {
    const absl::StatusOr<std::shared_ptr<Job>> job = router_.JobOf(*context);
    absl::Status status = job.status();
    if (job.ok()) status = (*job)->rendezvous().CheckRoom(*context, *request);
    // The reference in `job` keeps the job alive until the call is counted by busy(), see Sweep.
    if (status.ok()) return ((*job)->rendezvous().*method)(context, request, response);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(transport::ToGrpcStatus(status));
    return reactor;
  }

  JobRouter& router_;
};

class JobRouter::AgentRouter final : public pb::Agent::CallbackService {
 public:
  explicit AgentRouter(JobRouter& router) : router_(router) {}

  grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand>* Attach(
      grpc::CallbackServerContext* context) override {
    const absl::StatusOr<std::shared_ptr<Job>> job = router_.JobOf(*context);
    if (job.ok()) return (*job)->agents().Attach(context);
    return new RefusedStream(job.status());
  }

 private:
  JobRouter& router_;
};

JobRouter::JobRouter()
    : rendezvous_(std::make_unique<RendezvousRouter>(*this)),
      agents_(std::make_unique<AgentRouter>(*this)) {}

JobRouter::~JobRouter() {
  // The server still accepts calls here. A client that retries at once must get "unavailable" for a
  // job that another process will resume, not "no such job".
  for (const std::shared_ptr<Job>& job : jobs()) {
    Remove(job, job->is_kept() ? Token::kAwait : Token::kForget);
  }
  // Before the shutdown: the listener passes connections to gRPC's acceptor, whose server must be
  // running. Not destroyed yet: JobOf uses it.
  if (listener_ != nullptr) listener_->End();
  if (grpc_ == nullptr) return;
  grpc_->Shutdown(gpr_time_from_millis(kShutdownMs, GPR_TIMESPAN));
  grpc_->Wait();
}

absl::Status JobRouter::Listen(const std::vector<std::string>& listen,
                               const security::PeerCredentials& credentials,
                               absl::Duration patience) {
  // Enables gRPC's health service, which is a setting of the whole process.
  static std::once_flag health;
  std::call_once(health, [] { grpc::EnableDefaultHealthCheckService(true); });
  RETURN_IF_ERROR(security::CheckPem(credentials.ca_certificate, credentials.certificate,
                                     credentials.private_key));
  // Opened before gRPC's server is built, so that a port in use is an error of Listen. Connections
  // wait in the backlog until Begin.
  ASSIGN_OR_RETURN(listener_, GrpcListener::Open(listen));
  grpc::ServerBuilder builder;
  transport::ConfigureConnections(builder, patience);
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      security::MakeServerCredentials(
          credentials, [this](absl::string_view token) { return Find(token).has_value(); }));
  builder.RegisterService(rendezvous_.get());
  builder.RegisterService(agents_.get());
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) return absl::InternalError("gRPC's server did not start");
  listener_->Begin(std::move(acceptor), patience,
                   [this](const std::string& token) { return ConnectionsNeeded(token); });
  return absl::OkStatus();
}

void JobRouter::Await(const std::string& token) {
  absl::MutexLock lock(&mu_);
  entries_.push_back({token, nullptr});
}

void JobRouter::AwaitNoMore(const std::string& token) {
  absl::MutexLock lock(&mu_);
  Erase(token);
}

void JobRouter::Erase(absl::string_view token) {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [&](const Entry& entry) { return entry.token == token; }),
                 entries_.end());
}

std::shared_ptr<Job> JobRouter::Add(std::string token, std::unique_ptr<Job> job) {
  // Replaces the entry that Await has made, in one step, so that calls never see the token as
  // unknown.
  std::shared_ptr<Job> added = std::move(job);
  absl::MutexLock lock(&mu_);
  Sweep();
  Erase(token);
  entries_.push_back({std::move(token), added});
  return added;
}

void JobRouter::Remove(const std::shared_ptr<Job>& job, Token token) {
  {
    absl::MutexLock lock(&mu_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.job == job; });
    if (found != entries_.end() && token == Token::kAwait) {
      found->job = nullptr;
    } else if (found != entries_.end()) {
      entries_.erase(found);
    }
  }
  // Outside the lock: calls that Close ends may look up jobs. The entry is changed first, so that
  // no new call gets the job.
  job->Close();
  absl::MutexLock lock(&mu_);
  Sweep();
  // Kept until gRPC has released its last call or stream of this job, see Sweep.
  removed_.push_back(job);
}

std::vector<std::shared_ptr<Job>> JobRouter::jobs() {
  absl::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<Job>> jobs;
  for (const Entry& entry : entries_) {
    if (entry.job != nullptr) jobs.push_back(entry.job);
  }
  return jobs;
}

std::optional<std::shared_ptr<Job>> JobRouter::Find(absl::string_view token) {
  absl::MutexLock lock(&mu_);
  std::optional<std::shared_ptr<Job>> found;
  // Compares with all tokens, so that the time does not reveal which one matched.
  for (const Entry& entry : entries_) {
    if (ConstantTimeEquals(entry.token, token)) found = entry.job;
  }
  return found;
}

absl::StatusOr<std::shared_ptr<Job>> JobRouter::JobOf(const grpc::CallbackServerContext& context) {
  const auto token = context.client_metadata().find(security::kTokenMetadataKey);
  std::optional<std::shared_ptr<Job>> found;
  std::string text;
  if (token != context.client_metadata().end()) {
    text.assign(token->second.data(), token->second.size());
    found = Find(text);
  }
  if (!found.has_value()) return absl::UnauthenticatedError("no valid job token");
  listener_->OnAuthenticated(context.peer(), text);
  if (*found == nullptr) return absl::UnavailableError("the job is about to be resumed");
  return *std::move(found);
}

// One for each agent and worker, and as many again, for those whose end was not noticed yet; some
// more for `horovodrun status` and the like. Agents without work don't count any number of times.
size_t JobRouter::ConnectionsNeeded(const std::string& token) {
  constexpr size_t kOthers = 64;
  const std::optional<std::shared_ptr<Job>> found = Find(token);
  if (!found.has_value()) return 0;
  // Its workers try until it is resumed; how many they are is not known.
  if (*found == nullptr) return SIZE_MAX;
  const membership::Membership::View view = (*found)->Describe();
  size_t processes = view.hosts.size();
  for (const auto& host : view.hosts) processes += host.workers.size();
  return kOthers + std::min(2 * processes, 4 * static_cast<size_t>(view.max_workers));
}

void JobRouter::Sweep() {
  // use_count() > 1: JobOf has returned the job to a call that is not yet counted by busy().
  removed_.remove_if(
      [](const std::shared_ptr<Job>& job) { return job.use_count() == 1 && !job->busy(); });
}

}  // namespace hvd::rendezvous::server
