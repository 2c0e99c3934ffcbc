// RendezvousServer: many jobs, for schedulers.
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/net/address.h"
#include "base/status_macros.h"
#include "rendezvous/reporting/metrics.h"
#include "rendezvous/server/check_spec.h"
#include "rendezvous/server/job.h"
#include "rendezvous/server/job_router.h"
#include "rendezvous/server/local_worker_endpoint.h"
#include "rendezvous/server/server.h"
#include "rendezvous/transport/connection.h"

namespace hvd::rendezvous::server {
namespace {

constexpr size_t kRandomBytes = 32;

// The address at which workers of this machine reach a server that listens at `address`.
std::string ReachableFromHere(const std::string& address) {
  const net::HostPort parts = net::SplitHostPort(address);
  if (parts.host == "0.0.0.0") return net::JoinHostPort("127.0.0.1", parts.port);
  if (parts.host == "::") return net::JoinHostPort("::1", parts.port);
  return address;
}

class ServedJobImpl final : public ServedJob {
 public:
  ServedJobImpl(ServedJobOptions options, security::PeerCredentials credentials, FrontDoor& door)
      : options_(std::move(options)), credentials_(std::move(credentials)), door_(door) {}

  ~ServedJobImpl() override {
    if (job_ != nullptr) door_.Remove(job_);
    worker_door_.reset();  // its threads may be telling the job something
  }

  // Errors: those of AddJob.
  absl::Status Begin(Clock& clock) {
    if (options_.start_worker) {
      ASSIGN_OR_RETURN(worker_door_, WorkerDoor::Open(MakeBootstrap(), [this](WorkerId worker) {
                         job_->Post(membership::WorkerDying{worker});
                       }));
    }
    ASSIGN_OR_RETURN(std::unique_ptr<Job> job, Job::Create(MakeJobOptions(), clock));
    job_ = door_.Add(credentials_.token, std::move(job));
    return absl::OkStatus();
  }

  const std::string& id() const override { return options_.job_id; }
  const security::PeerCredentials& credentials() const override { return credentials_; }

  absl::Status OfferSlots(const std::vector<membership::HostSlots>& hosts) override {
    if (!options_.start_worker) {
      return absl::FailedPreconditionError(
          "no slots can be offered to a job without start_worker: its agents say what they have");
    }
    absl::MutexLock lock(&mu_);  // two offers must not cross
    if (options_.spec.elastic.has_value()) job_->Post(membership::HostsDiscovered{hosts});
    offered_.clear();
    for (const membership::HostSlots& host : hosts) {
      offered_[host.host] = host;
      JoinIfNew(host.host);
    }
    return absl::OkStatus();
  }

  absl::Status SetLimits(int min_workers, int max_workers) override {
    if (!options_.spec.elastic.has_value()) {
      return absl::FailedPreconditionError(
          "the size of a job that is not elastic can't be changed");
    }
    policy::JobSpec changed = options_.spec;
    changed.min_workers = min_workers;
    changed.max_workers = max_workers;
    RETURN_IF_ERROR(CheckSpec(changed));
    job_->Post(membership::LimitsChanged{min_workers, max_workers});
    return absl::OkStatus();
  }

  void ReportStarted(WorkerId worker, int64_t pid) override {
    job_->Post(membership::WorkerStarted{worker, pid});
  }

  void ReportExit(membership::WorkerExited exit) override {
    if (worker_door_ != nullptr) worker_door_->Forget(exit.worker);
    job_->Post(std::move(exit));
  }

  void Drain(std::string host, absl::Duration grace, std::string reason) override {
    job_->Post(membership::HostDraining{std::move(host), grace, std::move(reason)});
  }

  void RequestStop(std::string reason, int exit_code, absl::Duration grace) override {
    job_->Post(membership::StopRequested{std::move(reason), exit_code, grace});
  }

  membership::Membership::View Describe() override { return job_->Describe(); }
  std::string Metrics() override {
    return reporting::RenderMetrics({job_->Report().value_or(reporting::JobReport{})});
  }

 private:
  pb::WorkerBootstrap MakeBootstrap() const {
    const std::string address = ReachableFromHere(door_.addresses().front());
    pb::WorkerBootstrap bootstrap;
    bootstrap.set_job_id(options_.job_id);
    bootstrap.mutable_credentials()->set_token(credentials_.token);
    bootstrap.mutable_credentials()->set_ca_certificate(credentials_.ca_certificate);
    bootstrap.mutable_credentials()->set_certificate(credentials_.certificate);
    bootstrap.mutable_credentials()->set_private_key(credentials_.private_key);
    bootstrap.set_daemon_address(address);
    bootstrap.set_advertise_address(net::SplitHostPort(address).host);
    bootstrap.set_elastic(options_.spec.elastic.has_value());
    return bootstrap;
  }

  JobOptions MakeJobOptions() {
    JobOptions made;
    made.job_id = options_.job_id;
    made.spec = options_.spec;
    made.secret_key = RandomBytes(kRandomBytes);
    made.on_finished = options_.on_finished;
    made.on_notice = options_.on_notice;
    if (!options_.start_worker) return made;
    made.start_worker = [this](const membership::StartWorkerEffect& effect) {
      options_.start_worker({effect.worker, effect.host, worker_door_->Expect(effect)});
    };
    made.stop_workers = [this](const membership::StopWorkersEffect& effect) {
      for (const WorkerId worker : effect.workers) options_.stop_worker(worker, effect.grace);
    };
    made.end_host = [this](const membership::EndJobEffect& effect) { OnHostFree(effect); };
    return made;
  }

  // Takes the place of an agent: each host joins under a new incarnation.
  void JoinIfNew(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto [place, is_new] = joined_.try_emplace(host, Incarnation(last_incarnation_ + 1));
    if (!is_new) return;
    ++last_incarnation_;
    membership::HostJoined event;
    event.host = offered_.at(host);
    event.agent = place->second;
    job_->Post(std::move(event));
  }

  void OnHostFree(const membership::EndJobEffect& effect) {
    {
      absl::MutexLock lock(&mu_);
      const auto found = joined_.find(effect.host);
      if (found == joined_.end() || found->second != effect.agent) return;
      joined_.erase(found);
    }
    job_->Post(membership::HostLost{effect.host, effect.agent, "its slots were given back"});
    if (options_.on_host_free) options_.on_host_free(effect.host);
  }

  const ServedJobOptions options_;
  const security::PeerCredentials credentials_;
  FrontDoor& door_;
  std::unique_ptr<WorkerDoor> worker_door_;
  std::shared_ptr<Job> job_;
  absl::Mutex mu_;
  std::map<std::string, membership::HostSlots> offered_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Incarnation> joined_ ABSL_GUARDED_BY(mu_);
  uint64_t last_incarnation_ ABSL_GUARDED_BY(mu_) = 0;
};

class RendezvousServerImpl final : public RendezvousServer {
 public:
  explicit RendezvousServerImpl(Clock& clock) : clock_(clock) {}

  // Errors: those of Start.
  absl::Status Begin(const std::vector<std::string>& listen) {
    if (listen.empty()) return absl::InvalidArgumentError("no address to listen on");
    ASSIGN_OR_RETURN(authority_, security::JobAuthority::Create(security::NewJobId()));
    ASSIGN_OR_RETURN(const security::PeerCredentials own, authority_->IssueForDaemon());
    return door_.Listen(listen, own, transport::kProcessPatience);
  }

  const std::vector<std::string>& addresses() const override { return door_.addresses(); }

  absl::StatusOr<std::unique_ptr<ServedJob>> AddJob(ServedJobOptions options) override {
    RETURN_IF_ERROR(CheckSpec(options.spec));
    if (static_cast<bool>(options.start_worker) != static_cast<bool>(options.stop_worker)) {
      return absl::InvalidArgumentError("who starts workers must stop them, and the other way");
    }
    if (options.job_id.empty()) options.job_id = security::NewJobId();
    absl::MutexLock lock(&mu_);  // or two jobs of one id could come in side by side
    for (const std::shared_ptr<Job>& job : door_.jobs()) {
      if (job->id() != options.job_id) continue;
      return absl::AlreadyExistsError(absl::StrCat("there is a job ", options.job_id));
    }
    ASSIGN_OR_RETURN(security::PeerCredentials credentials,
                     authority_->IssueForHost(security::kAnyHost));
    credentials.token = absl::BytesToHexString(RandomBytes(kRandomBytes));
    auto job = std::make_unique<ServedJobImpl>(std::move(options), std::move(credentials), door_);
    RETURN_IF_ERROR(job->Begin(clock_));
    return job;
  }

  std::string Metrics() override {
    std::vector<reporting::JobReport> reports;
    for (const std::shared_ptr<Job>& job : door_.jobs()) {
      // It may end just now.
      if (auto report = job->Report()) reports.push_back(*std::move(report));
    }
    return reporting::RenderMetrics(reports);
  }

 private:
  Clock& clock_;
  std::unique_ptr<security::JobAuthority> authority_;
  absl::Mutex mu_;
  FrontDoor door_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(
    const std::vector<std::string>& listen, Clock& clock) {
  auto server = std::make_unique<RendezvousServerImpl>(clock);
  RETURN_IF_ERROR(server->Begin(listen));
  return server;
}

}  // namespace hvd::rendezvous::server
