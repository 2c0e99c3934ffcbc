#include "rendezvous/server/server.h"

#include <utility>

#include "base/crypto.h"
#include "base/status_macros.h"
#include "rendezvous/reporting/metrics.h"
#include "rendezvous/server/check_spec.h"
#include "rendezvous/server/job.h"
#include "rendezvous/server/job_router.h"

namespace hvd::rendezvous::server {
namespace {

absl::Status CheckOptions(const ServerOptions& options) {
  const security::PeerCredentials& credentials = options.credentials;
  if (options.job_id.empty()) return absl::InvalidArgumentError("the job has no id");
  if (credentials.token.empty() || credentials.ca_certificate.empty() ||
      credentials.certificate.empty() || credentials.private_key.empty()) {
    return absl::InvalidArgumentError("the server's credentials are incomplete");
  }
  if (options.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
  return CheckSpec(options.job);
}

JobOptions ToJobOptions(const ServerOptions& options) {
  JobOptions job;
  job.job_id = options.job_id;
  job.spec = options.job;
  // Without a journal no later daemon has to derive the same secrets.
  job.secret_key = options.secret_key.empty() ? RandomBytes(32) : options.secret_key;
  job.journal = options.journal;
  job.on_finished = options.on_finished;
  job.on_notice = options.on_notice;
  job.on_journal_error = options.on_journal_error;
  job.on_fault_done = options.on_fault_done;
  return job;
}

class ServerImpl final : public Server {
 public:
  // Errors: those of Server::Start.
  absl::Status Begin(const ServerOptions& options, Clock& clock) {
    ASSIGN_OR_RETURN(std::unique_ptr<Job> job, Job::Create(ToJobOptions(options), clock));
    // Added before Listen, so that the first call finds the job.
    job_ = router_.Add(options.credentials.token, std::move(job));
    return router_.Listen(options.listen, options.credentials, options.agent_timeout);
  }

  std::vector<std::string> addresses() const override { return router_.addresses(); }

  void RequestStop(std::string reason, int exit_code, absl::Duration grace) override {
    job_->Post(membership::StopRequested{std::move(reason), exit_code, grace});
  }

  void Interrupt(std::string reason, int exit_code, absl::Duration grace) override {
    job_->Post(membership::StopRequested{std::move(reason), exit_code, grace,
                                         /*keeps_world=*/true});
  }

  void SignalWorkers(int signal) override { job_->agents().SignalWorkers(signal); }

  bool Harm(const std::string& host, const pb::Fault& fault) override {
    return job_->agents().Harm(host, fault);
  }

  void ReportHosts(std::vector<membership::HostSlots> hosts) override {
    job_->Post(membership::HostsDiscovered{std::move(hosts)});
  }

  void EndAtCommit(std::string reason, int exit_code, absl::Duration grace) override {
    job_->Post(membership::StopRequested{std::move(reason), exit_code, grace,
                                         /*keeps_world=*/false, /*at_commit=*/true});
  }

  void Drain(std::string host, absl::Duration grace, std::string reason) override {
    job_->Post(membership::HostDraining{std::move(host), grace, std::move(reason)});
  }

  membership::Membership::View Describe() override { return job_->Describe(); }

  absl::Duration BusyFor() override { return job_->BusyFor(); }

  std::string Metrics() override {
    return reporting::RenderMetrics({job_->Report().value_or(reporting::JobReport{})});
  }

 private:
  std::shared_ptr<Job> job_;
  JobRouter router_;  // the last member: its destructor closes the job
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, Clock& clock) {
  RETURN_IF_ERROR(CheckOptions(options));
  auto server = std::make_unique<ServerImpl>();
  RETURN_IF_ERROR(server->Begin(options, clock));
  return server;
}

}  // namespace hvd::rendezvous::server
