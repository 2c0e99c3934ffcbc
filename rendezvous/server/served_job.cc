#include "rendezvous/server/served_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/address.h"
#include "base/status_macros.h"
#include "rendezvous/reporting/metrics.h"
#include "rendezvous/security/credentials_message.h"
#include "rendezvous/server/check_spec.h"
#include "rendezvous/transport/message_time.h"

namespace hvd::rendezvous::server {
namespace {

// How long workers of a job without a state directory try to reach the server. It runs on the same
// machine and does not come back, so they only need to be sure that it has gone.
constexpr absl::Duration kGoneAfter = absl::Seconds(5);

// The address at which workers of this machine reach a server that listens at `address`.
std::string ReachableFromHere(const std::string& address) {
  const net::HostPort parts = net::SplitHostPort(address);
  if (parts.host == "0.0.0.0") return net::JoinHostPort("127.0.0.1", parts.port);
  if (parts.host == "::") return net::JoinHostPort("::1", parts.port);
  return address;
}

}  // namespace

ServedJobImpl::ServedJobImpl(ServedJobOptions options, security::PeerCredentials credentials,
                             store::JobParts parts, JobRouter& router,
                             std::function<void()> on_removed)
    : options_(std::move(options)),
      credentials_(std::move(credentials)),
      parts_(std::move(parts)),
      router_(router),
      on_removed_(std::move(on_removed)) {}

ServedJobImpl::~ServedJobImpl() {
  if (job_ != nullptr) {
    // The job may end between this check and Remove. Then finished_ is set below, and its token is
    // revoked.
    const bool goes_on = is_kept() && !finished_;
    router_.Remove(job_, goes_on ? JobRouter::Token::kAwait : JobRouter::Token::kForget);
    if (finished_) router_.AwaitNoMore(credentials_.token);
  }
  worker_door_.reset();  // before job_ and the journal: its threads may still post events
  // Closed before on_removed_ deletes their files.
  parts_.journal.reset();
  parts_.store.reset();
  if (finished_) on_removed_();
}

absl::Status ServedJobImpl::Begin(Clock& clock) {
  if (options_.start_worker) {
    ASSIGN_OR_RETURN(worker_door_, LocalWorkerEndpoint::Open(
                                       MakeBootstrap(), parts_.secret_key, [this](WorkerId worker) {
                                         job_->Post(membership::WorkerDying{worker});
                                       }));
  }
  if (is_kept()) {
    // Before the job starts any worker: workers keep the addresses in their environment, and a
    // later process must find them.
    RETURN_IF_ERROR(store::SaveAsBegun(parts_, router_.addresses()));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Job> job, Job::Create(MakeJobOptions(), clock));
  // The callbacks above use job_. None comes before this assignment: effects that need it follow a
  // host's HostJoined, which is posted below or by OfferSlots.
  job_ = router_.Add(credentials_.token, std::move(job));
  if (options_.start_worker && job_->resumed()) TakeUp();
  return absl::OkStatus();
}

pb::WorkerBootstrap ServedJobImpl::MakeBootstrap() const {
  const std::string address = ReachableFromHere(router_.addresses().front());
  pb::WorkerBootstrap bootstrap;
  bootstrap.set_job_id(options_.job_id);
  *bootstrap.mutable_credentials() = security::ToMessage(credentials_);
  bootstrap.set_daemon_address(address);
  bootstrap.set_advertise_address(net::SplitHostPort(address).host);
  bootstrap.set_elastic(options_.spec.elastic.has_value());
  bootstrap.set_encrypt_data(options_.spec.encrypt_data);
  // At least kGoneAfter: with a short reattach timeout, workers would give the server up for one
  // slow answer.
  const absl::Duration away = is_kept() ? options_.spec.reattach_timeout : kGoneAfter;
  bootstrap.set_away_ms(transport::ToMilliseconds(std::max(away, kGoneAfter)));
  if (is_kept())
    bootstrap.set_reattach_ms(transport::ToMilliseconds(options_.spec.reattach_timeout));
  return bootstrap;
}

JobOptions ServedJobImpl::MakeJobOptions() {
  JobOptions made;
  made.job_id = options_.job_id;
  made.spec = options_.spec;
  made.secret_key = parts_.secret_key;
  made.journal = parts_.journal.get();
  made.on_finished = [this](const membership::Verdict& verdict) {
    finished_ = true;
    if (options_.on_finished) options_.on_finished(verdict);
  };
  made.on_notice = options_.on_notice;
  made.on_journal_error = options_.on_journal_error;
  if (!options_.start_worker) {
    made.on_host_held = options_.on_host_free;
    return made;
  }
  made.start_worker = [this](const membership::StartWorkerEffect& effect) {
    options_.start_worker({effect.worker, effect.host, worker_door_->Expect(effect)});
  };
  made.stop_workers = [this](const membership::StopWorkersEffect& effect) {
    for (const WorkerId worker : effect.workers) options_.stop_worker(worker, effect.grace);
  };
  made.end_host = [this](const membership::EndJobEffect& effect) { OnHostFree(effect); };
  return made;
}

// Restores the state of a resumed job: its hosts, their incarnations, and the workers that the
// scheduler must report.
void ServedJobImpl::TakeUp() {
  absl::MutexLock lock(&mu_);
  earlier_ = server::EarlierWorkers(job_->awaited());
  for (const membership::Membership::AttachedHost& host : job_->awaited()) {
    offered_[host.host.host] = host.host;
    joined_[host.host.host] = host.agent;
    // A host that joins anew must not get the incarnation of an awaited one, which the machine
    // would take for a reattachment.
    last_incarnation_ = std::max(last_incarnation_, host.agent.value());
    for (const auto& worker : host.workers) worker_door_->ExpectAgain(worker.id, host.host.host);
  }
  Post(earlier_.Begin());
}

std::vector<EarlierWorker> ServedJobImpl::EarlierWorkers() {
  absl::MutexLock lock(&mu_);
  return earlier_.Unknown();
}

absl::Status ServedJobImpl::StartAgain(WorkerId worker) {
  absl::MutexLock lock(&mu_);
  if (!earlier_.IsUnknown(worker)) {
    return absl::NotFoundError(absl::StrCat("there is no earlier worker ", worker.value(),
                                            " of which nothing was said yet"));
  }
  Post(*earlier_.Say(worker, std::nullopt));
  return absl::OkStatus();
}

void ServedJobImpl::Say(WorkerId worker, membership::Event said) {
  absl::MutexLock lock(&mu_);  // reports on one worker must be posted in order
  std::optional<std::vector<membership::Event>> due = earlier_.Say(worker, said);
  if (!due.has_value()) return job_->Post(std::move(said));
  Post(*std::move(due));
}

void ServedJobImpl::Post(std::vector<membership::Event> events) {
  for (membership::Event& event : events) job_->Post(std::move(event));
}

void ServedJobImpl::OfferSlots(const std::vector<membership::HostSlots>& hosts) {
  if (!options_.start_worker) {
    return job_->Post(membership::HostsDiscovered{hosts, /*is_offer=*/true});
  }
  // Concurrent offers must be posted in the order in which offered_ changes.
  absl::MutexLock lock(&mu_);
  // Before the joins: a host that an earlier list had withdrawn would be ended when it joins.
  if (options_.spec.elastic.has_value()) job_->Post(membership::HostsDiscovered{hosts});
  offered_.clear();
  for (const membership::HostSlots& host : hosts) {
    offered_[host.host] = host;
    JoinIfNew(host.host);
  }
}

// Posts HostJoined in place of an agent. Each time that a host joins, it has a new incarnation.
void ServedJobImpl::JoinIfNew(const std::string& host) {
  const auto [place, is_new] = joined_.try_emplace(host, Incarnation(last_incarnation_ + 1));
  if (!is_new) return;
  ++last_incarnation_;
  membership::HostJoined event;
  event.host = offered_.at(host);
  event.agent = place->second;
  job_->Post(std::move(event));
}

void ServedJobImpl::OnHostFree(const membership::EndJobEffect& effect) {
  {
    absl::MutexLock lock(&mu_);
    const auto found = joined_.find(effect.host);
    if (found == joined_.end() || found->second != effect.agent) return;
    // Erased before on_host_free is called, which may offer the host again.
    joined_.erase(found);
    // Under the lock, as in OfferSlots: a new HostJoined of this host must come after it.
    job_->Post(membership::HostLost{effect.host, effect.agent, "its slots were given back"});
  }
  if (options_.on_host_free) options_.on_host_free(effect.host);
}

void ServedJobImpl::ReportStarted(WorkerId worker, int64_t pid) {
  Say(worker, membership::WorkerStarted{worker, pid});
}

void ServedJobImpl::ReportExit(membership::WorkerExited exit) {
  const WorkerId worker = exit.worker;
  // Before the event: once the exit is reported, no process may get credentials as this worker.
  if (worker_door_ != nullptr) worker_door_->Forget(worker);
  Say(worker, std::move(exit));
}

absl::Status ServedJobImpl::SetLimits(int min_workers, int max_workers) {
  if (!options_.spec.elastic.has_value()) {
    return absl::FailedPreconditionError("the size of a job that is not elastic can't be changed");
  }
  policy::JobSpec changed = options_.spec;
  changed.min_workers = min_workers;
  changed.max_workers = max_workers;
  RETURN_IF_ERROR(CheckSpec(changed));
  job_->Post(membership::LimitsChanged{min_workers, max_workers});
  return absl::OkStatus();
}

void ServedJobImpl::Drain(std::string host, absl::Duration grace, std::string reason) {
  job_->Post(membership::HostDraining{std::move(host), grace, std::move(reason)});
}

void ServedJobImpl::RequestStop(std::string reason, int exit_code, absl::Duration grace) {
  job_->Post(membership::StopRequested{std::move(reason), exit_code, grace});
}

std::string ServedJobImpl::Metrics() {
  return reporting::RenderMetrics({job_->Report().value_or(reporting::JobReport{})});
}

}  // namespace hvd::rendezvous::server
