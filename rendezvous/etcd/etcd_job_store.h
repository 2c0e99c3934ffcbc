// A job store in etcd, for the daemon that leads the job.
#ifndef RENDEZVOUS_ETCD_ETCD_JOB_STORE_H_
#define RENDEZVOUS_ETCD_ETCD_JOB_STORE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "rendezvous/etcd/campaign.h"
#include "rendezvous/etcd/fenced_writer.h"
#include "rendezvous/etcd/key_value_store.h"
#include "rendezvous/etcd/keys.h"
#include "rendezvous/etcd/leadership.h"
#include "rendezvous/etcd/lease_keeper.h"
#include "rendezvous/store/job_store.h"

namespace hvd::rendezvous::etcd {

// OnLost is called when another daemon leads the job, or may; from then on all writes fail. The
// job's secrets are stored unencrypted: anyone who can read the job's keys in etcd can join the
// job.
class EtcdJobStore final : public store::JobStore {
 public:
  struct Options {
    std::string job;          // its name in etcd: the value of --job
    Candidate candidate;      // this daemon
    absl::Duration reattach;  // see LeaseSchedule
  };

  // Blocks until this daemon leads the job.
  // Errors:
  //   - Aborted: the leadership was lost again.
  //   - DataLoss: the identity of the stored job is damaged; gives the remedy.
  //   - FailedPrecondition: the stored job has another format.
  //   - InvalidArgument: etcd does not let the user read the job's keys; names their prefix.
  //   - Others: those of Campaign and KeyValueStore.
  static absl::StatusOr<std::unique_ptr<EtcdJobStore>> Open(std::unique_ptr<KeyValueStore> store,
                                                            const Options& options,
                                                            const CampaignCallbacks& callbacks,
                                                            Clock& clock = Clock::Real());
  ~EtcdJobStore() override = default;

  const std::string& name() const override { return name_; }
  Terms terms() const override { return {"--job", /*keeps_addresses=*/false}; }
  const std::optional<pb::journal::Job>& identity() const override { return job_; }
  absl::Status SaveIdentity(const pb::journal::Job& job) override;
  absl::StatusOr<OpenedJournal> OpenJournal(const std::string& job_id, const policy::JobSpec& spec,
                                            absl::Time now) override;
  void OnLost(std::function<void(const absl::Status& why)> callback) override;

 private:
  EtcdJobStore(std::unique_ptr<KeyValueStore> store, const Options& options,
               const Election& election, Clock& clock);
  absl::Status Load(FencedWriter::Say say);

  const std::unique_ptr<KeyValueStore> store_;
  const JobKeys keys_;
  const std::string name_;
  Leadership leadership_;
  LeaseKeeper keeper_;
  std::optional<FencedWriter> writer_;
  std::optional<pb::journal::Job> job_;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_ETCD_JOB_STORE_H_
