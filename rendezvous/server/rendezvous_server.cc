// RendezvousServer: any number of jobs at one listener, for schedulers.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "proto/journal.pb.h"
#include "rendezvous/reporting/metrics.h"
#include "rendezvous/security/credentials_message.h"
#include "rendezvous/server/check_spec.h"
#include "rendezvous/server/job.h"
#include "rendezvous/server/job_recovery.h"
#include "rendezvous/server/job_router.h"
#include "rendezvous/server/served_job.h"
#include "rendezvous/server/server.h"
#include "rendezvous/store/job_parts.h"
#include "rendezvous/store/server_store.h"
#include "rendezvous/transport/connection.h"

namespace hvd::rendezvous::server {
namespace {

std::string Addresses(const std::vector<std::string>& listen) {
  return absl::StrJoin(listen, ", ");
}

// Creates new secrets. The CA's key is destroyed on return, so that no further certificate can be
// issued.
absl::StatusOr<pb::journal::Server> NewIdentity(const std::vector<std::string>& listen) {
  ASSIGN_OR_RETURN(const std::unique_ptr<security::JobAuthority> authority,
                   security::JobAuthority::Create(security::NewJobId()));
  ASSIGN_OR_RETURN(const security::PeerCredentials daemon, authority->IssueForDaemon());
  ASSIGN_OR_RETURN(const security::PeerCredentials hosts,
                   authority->IssueForHost(security::kAnyHost));
  pb::journal::Server made;
  *made.mutable_daemon() = security::ToMessage(daemon);
  *made.mutable_hosts() = security::ToMessage(hosts);
  for (const std::string& address : listen) made.add_listen(address);
  return made;
}

store::JobTerms TermsOf(const ServedJobOptions& options) {
  return {options.job_id, options.spec, options.start_worker != nullptr};
}

// Describes the store's job, with `problem` set if its journal can't be read.
KeptJob Describe(store::JobStore& store, absl::Time now) {
  store::JobTerms terms = store::TermsOf(store);
  KeptJob kept;
  kept.id = std::move(terms.id);
  kept.spec = std::move(terms.spec);
  kept.starts_workers = terms.starts_workers;
  const auto opened = store.OpenJournal(kept.id, kept.spec, now);
  kept.problem = opened.status();
  if (!opened.ok()) return kept;
  const auto recovered = Recover(kept.spec, *opened->journal);
  kept.problem = recovered.status();
  if (recovered.ok()) kept.ended = recovered->verdict;
  return kept;
}

class RendezvousServerImpl final : public RendezvousServer {
 public:
  explicit RendezvousServerImpl(Clock& clock) : clock_(clock) {}

  // Errors: those of Start.
  absl::Status Begin(const RendezvousServerOptions& options) {
    if (options.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
    absl::MutexLock lock(&mu_);
    ASSIGN_OR_RETURN(pb::journal::Server identity, OpenIdentity(options));
    hosts_ = security::FromMessage(identity.hosts());
    const auto& kept = identity.addresses();
    const std::vector<std::string> addresses(kept.begin(), kept.end());
    // Before Listen: agents of kept jobs reconnect as soon as the port is open, and must not get
    // "no such job".
    AwaitKeptJobs();
    RETURN_IF_ERROR(router_.Listen(addresses.empty() ? options.listen : addresses,
                                   security::FromMessage(identity.daemon()),
                                   transport::kProcessPatience));
    if (store_ == nullptr) return absl::OkStatus();
    // With the real ports: a later process must listen there, since the agents and workers of its
    // jobs know no other address.
    identity.clear_addresses();
    for (const std::string& address : router_.addresses()) identity.add_addresses(address);
    return store_->SaveIdentity(identity);
  }

  const std::vector<std::string>& addresses() const override { return router_.addresses(); }

  absl::StatusOr<std::unique_ptr<ServedJob>> AddJob(ServedJobOptions options) override {
    RETURN_IF_ERROR(CheckSpec(options.spec));
    if (static_cast<bool>(options.start_worker) != static_cast<bool>(options.stop_worker)) {
      return absl::InvalidArgumentError("start_worker and stop_worker: set both, or neither");
    }
    if (options.job_id.empty()) options.job_id = security::NewJobId();
    absl::MutexLock lock(&mu_);  // makes the check and the insertion of an id atomic
    if (Serves(options.job_id)) {
      return absl::AlreadyExistsError(absl::StrCat("there is a job ", options.job_id));
    }
    const std::string id = options.job_id;
    // A new job that can't begin must leave nothing behind, or KeptJobs would list a job of which
    // nobody knows. A kept job stays: its next AddJob may succeed.
    const bool is_new = store_ != nullptr && !store_->HasJob(id);
    auto job = Begin(std::move(options));
    if (is_new && !job.ok()) store_->RemoveJob(id).IgnoreError();
    return job;
  }

  std::vector<KeptJob> KeptJobs() override {
    absl::MutexLock lock(&mu_);
    std::vector<KeptJob> kept;
    if (store_ == nullptr) return kept;
    for (const auto& store : store_->OpenOtherJobs()) {
      kept.push_back(store.ok() ? Describe(**store, clock_.Now()) : KeptJob{});
      if (!store.ok()) kept.back().problem = store.status();
    }
    return kept;
  }

  absl::Status ForgetJob(const std::string& id) override {
    absl::MutexLock lock(&mu_);
    if (Serves(id)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the job ", id, " is on the server: request its stop, or remove it first"));
    }
    if (store_ == nullptr || !store_->HasJob(id)) {
      return absl::NotFoundError(absl::StrCat("no job ", id, " is kept"));
    }
    if (const auto store = store_->OpenJob(id); store.ok() && (*store)->identity().has_value()) {
      // From now on callers that wait for this job get UNAUTHENTICATED and give up. If the identity
      // can't be read, its token was never awaited.
      router_.AwaitNoMore((*store)->identity()->hosts().token());
    }
    return store_->RemoveJob(id);
  }

  std::string Metrics() override {
    // Without mu_: a job that hangs takes kPatience to answer, and AddJob must not wait for that.
    std::vector<reporting::JobReport> reports;
    for (const std::shared_ptr<Job>& job : router_.jobs()) {
      // A job that is closed at the same time has no report.
      if (auto report = job->Report()) reports.push_back(*std::move(report));
    }
    return reporting::RenderMetrics(reports);
  }

 private:
  absl::StatusOr<pb::journal::Server> OpenIdentity(const RendezvousServerOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (options.state_dir.empty()) return NewIdentity(options.listen);
    ASSIGN_OR_RETURN(store_, store::ServerStore::Open(options.state_dir));
    if (!store_->identity().has_value()) {
      ASSIGN_OR_RETURN(pb::journal::Server identity, NewIdentity(options.listen));
      RETURN_IF_ERROR(store_->SaveIdentity(identity));
      return identity;
    }
    const auto& kept = store_->identity()->listen();
    const std::vector<std::string> listened(kept.begin(), kept.end());
    if (listened == options.listen) return *store_->identity();
    return absl::FailedPreconditionError(absl::StrCat(
        "the server of ", options.state_dir, " was to listen at ", Addresses(listened), ", not at ",
        Addresses(options.listen), "; its agents and workers look for it there"));
  }

  absl::StatusOr<std::unique_ptr<ServedJob>> Begin(ServedJobOptions options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ASSIGN_OR_RETURN(store::JobParts parts, OpenParts(options));
    security::PeerCredentials credentials = hosts_;
    credentials.token = parts.token;
    std::function<void()> on_removed = RemovalOf(options.job_id);
    auto job = std::make_unique<ServedJobImpl>(std::move(options), std::move(credentials),
                                               std::move(parts), router_, std::move(on_removed));
    RETURN_IF_ERROR(job->Begin(clock_));
    return job;
  }

  void AwaitKeptJobs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (store_ == nullptr) return;
    for (const auto& store : store_->OpenOtherJobs()) {
      if (store.ok()) router_.Await((*store)->identity()->hosts().token());
    }
  }

  bool Serves(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const std::shared_ptr<Job>& job : router_.jobs()) {
      if (job->id() == id) return true;
    }
    return false;
  }

  absl::StatusOr<store::JobParts> OpenParts(const ServedJobOptions& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (store_ == nullptr) return store::NewJobParts();
    ASSIGN_OR_RETURN(std::unique_ptr<store::JobStore> store, store_->OpenJob(options.job_id));
    return store::OpenJobParts(std::move(store), TermsOf(options), clock_.Now());
  }

  // Returns the callback that removes an ended job from the state directory.
  std::function<void()> RemovalOf(const std::string& id) {
    // It takes mu_. AddJob, which holds mu_, destroys a job only if that could not begin; such a
    // job has not finished, so it does not call this.
    return [this, id] {
      absl::MutexLock lock(&mu_);
      // If this fails, KeptJobs lists the job as ended.
      if (store_ != nullptr) store_->RemoveJob(id).IgnoreError();
    };
  }

  Clock& clock_;
  absl::Mutex mu_;
  std::unique_ptr<store::ServerStore> store_ ABSL_GUARDED_BY(mu_);  // null: no state directory
  security::PeerCredentials hosts_ ABSL_GUARDED_BY(mu_);  // of all jobs; the token differs
  JobRouter router_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(
    const RendezvousServerOptions& options, Clock& clock) {
  auto server = std::make_unique<RendezvousServerImpl>(clock);
  RETURN_IF_ERROR(server->Begin(options));
  return server;
}

}  // namespace hvd::rendezvous::server
