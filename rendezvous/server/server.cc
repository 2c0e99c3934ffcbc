#include "rendezvous/server/server.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/server/job.h"
#include "rendezvous/server/listen_address.h"
#include "rendezvous/transport/connection.h"

namespace hvd {
namespace {

// For replies and last commands to go out when the server is destroyed; what has not gone by then
// is cancelled.
constexpr int kShutdownMs = 2000;

absl::Status CheckOptions(const ServerOptions& options) {
  const PeerCredentials& credentials = options.credentials;
  if (options.job_id.empty()) return absl::InvalidArgumentError("the job has no id");
  if (credentials.token.empty() || credentials.ca_certificate.empty() ||
      credentials.certificate.empty() || credentials.private_key.empty()) {
    return absl::InvalidArgumentError("the server's credentials are incomplete");
  }
  if (options.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
  if (options.job.min_workers < 1 || options.job.max_workers < options.job.min_workers) {
    return absl::InvalidArgumentError(absl::StrCat("a job can't have from ",
                                                   options.job.min_workers, " to ",
                                                   options.job.max_workers, " workers"));
  }
  return absl::OkStatus();
}

JobOptions ToJobOptions(const ServerOptions& options) {
  JobOptions job;
  job.job_id = options.job_id;
  job.spec = options.job;
  job.secret_key = options.secret_key.empty() ? RandomBytes(32) : options.secret_key;
  job.journal = options.journal;
  job.on_finished = options.on_finished;
  job.on_notice = options.on_notice;
  job.on_journal_error = options.on_journal_error;
  return job;
}

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, std::unique_ptr<Job> job)
      : options_(std::move(options)), job_(std::move(job)) {}

  ~ServerImpl() override {
    job_->Close();
    if (grpc_ == nullptr) return;
    grpc_->Shutdown(gpr_time_from_millis(kShutdownMs, GPR_TIMESPAN));
    grpc_->Wait();
  }

  // Errors as Server::Start.
  absl::Status Listen() {
    // gRPC's switch for its own health service; it is the same for all servers of a process.
    static std::once_flag health;
    std::call_once(health, [] { grpc::EnableDefaultHealthCheckService(true); });
    std::vector<ListenAddress> listen;
    for (const std::string& text : options_.listen) {
      ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
      // gRPC would say only that it could not start, and log the reason.
      RETURN_IF_ERROR(TryToListen(address));
      listen.push_back(std::move(address));
    }
    grpc::ServerBuilder builder;
    ConfigureConnections(builder);
    std::vector<int> ports(listen.size(), 0);
    const auto credentials = MakeServerCredentials(options_.credentials);
    for (size_t i = 0; i < listen.size(); ++i) {
      builder.AddListeningPort(listen[i].WithPort(listen[i].port), credentials, &ports[i]);
    }
    builder.RegisterService(&job_->rendezvous());
    builder.RegisterService(&job_->agents());
    grpc_ = builder.BuildAndStart();
    if (grpc_ == nullptr) {
      return absl::InvalidArgumentError(
          "can't serve with these credentials, or an address is listed twice");
    }
    for (size_t i = 0; i < listen.size(); ++i) addresses_.push_back(listen[i].WithPort(ports[i]));
    return absl::OkStatus();
  }

  std::vector<std::string> addresses() const override { return addresses_; }

  void RequestStop(std::string reason, int exit_code, absl::Duration grace) override {
    job_->Post(StopRequested{std::move(reason), exit_code, grace});
  }

  void ReportHosts(std::vector<HostSlots> hosts) override {
    job_->Post(HostsDiscovered{std::move(hosts)});
  }

  void Drain(std::string host, absl::Duration grace, std::string reason) override {
    job_->Post(HostDraining{std::move(host), grace, std::move(reason)});
  }

  Membership::View Describe() override { return job_->Report().view; }

 private:
  const ServerOptions options_;
  const std::unique_ptr<Job> job_;
  std::vector<std::string> addresses_;
  std::unique_ptr<grpc::Server> grpc_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, Clock& clock) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(std::unique_ptr<Job> job, Job::Create(ToJobOptions(options), clock));
  auto server = std::make_unique<ServerImpl>(std::move(options), std::move(job));
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace hvd
