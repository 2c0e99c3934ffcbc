// The implementation of ServedJob: translates the scheduler's calls to events, and effects to the
// scheduler's callbacks.
#ifndef RENDEZVOUS_SERVER_SERVED_JOB_H_
#define RENDEZVOUS_SERVER_SERVED_JOB_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/server/earlier_workers.h"
#include "rendezvous/server/job.h"
#include "rendezvous/server/job_router.h"
#include "rendezvous/server/local_worker_endpoint.h"
#include "rendezvous/server/server.h"
#include "rendezvous/store/job_parts.h"

namespace hvd::rendezvous::server {

// Thread-safe. `router` must outlive it.
class ServedJobImpl final : public ServedJob {
 public:
  // `credentials` are those of the job's agents and workers. `on_removed` is called after a job
  // that has ended was removed from the server and its store was closed.
  ServedJobImpl(ServedJobOptions options, security::PeerCredentials credentials,
                store::JobParts parts, JobRouter& router, std::function<void()> on_removed);
  ~ServedJobImpl() override;

  // Errors: those of RendezvousServer::AddJob.
  absl::Status Begin(Clock& clock);

  const std::string& id() const override { return options_.job_id; }
  const security::PeerCredentials& credentials() const override { return credentials_; }
  std::vector<EarlierWorker> EarlierWorkers() override;
  absl::Status StartAgain(WorkerId worker) override;
  void OfferSlots(const std::vector<membership::HostSlots>& hosts) override;
  void ReportStarted(WorkerId worker, int64_t pid) override;
  void ReportExit(membership::WorkerExited exit) override;
  absl::Status SetLimits(int min_workers, int max_workers) override;
  void Drain(std::string host, absl::Duration grace, std::string reason) override;
  void RequestStop(std::string reason, int exit_code, absl::Duration grace) override;
  membership::Membership::View Describe() override { return job_->Describe(); }
  std::string Metrics() override;

 private:
  bool is_kept() const { return parts_.store != nullptr; }
  pb::WorkerBootstrap MakeBootstrap() const;
  JobOptions MakeJobOptions();
  void TakeUp();
  void Say(WorkerId worker, membership::Event said);
  void Post(std::vector<membership::Event> events);
  void JoinIfNew(const std::string& host) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHostFree(const membership::EndJobEffect& effect);

  const ServedJobOptions options_;
  const security::PeerCredentials credentials_;
  store::JobParts parts_;
  JobRouter& router_;
  const std::function<void()> on_removed_;
  std::atomic<bool> finished_{false};
  std::unique_ptr<LocalWorkerEndpoint> worker_door_;
  std::shared_ptr<Job> job_;
  absl::Mutex mu_;
  server::EarlierWorkers earlier_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, membership::HostSlots> offered_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Incarnation> joined_ ABSL_GUARDED_BY(mu_);
  uint64_t last_incarnation_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_SERVED_JOB_H_
