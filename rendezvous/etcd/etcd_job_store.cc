#include "rendezvous/etcd/etcd_job_store.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "rendezvous/etcd/etcd_journal.h"
#include "rendezvous/etcd/reading.h"

namespace hvd::rendezvous::etcd {
namespace {

constexpr uint32_t kFormat = 2;  // of the identity, as in FileJobStore

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdJobStore>> EtcdJobStore::Open(
    std::unique_ptr<KeyValueStore> store, const Options& options,
    const CampaignCallbacks& callbacks, Clock& clock) {
  ASSIGN_OR_RETURN(const Election election,
                   Campaign(*store, JobKeys(options.job), options.candidate, callbacks, clock));
  // The constructor starts the keeper of the lease, because Load may take longer than the lease
  // lasts.
  auto opened = absl::WrapUnique(new EtcdJobStore(std::move(store), options, election, clock));
  RETURN_IF_ERROR(opened->Load(callbacks.say));
  return opened;
}

EtcdJobStore::EtcdJobStore(std::unique_ptr<KeyValueStore> store, const Options& options,
                           const Election& election, Clock& clock)
    : store_(std::move(store)),
      keys_(options.job),
      name_(absl::StrCat(options.job, " in etcd at ", store_->name())),
      leadership_(election.revision, election.lease, clock),
      keeper_(*store_, leadership_, keys_.Leader(), options.reattach) {}

absl::Status EtcdJobStore::Load(FencedWriter::Say say) {
  ASSIGN_OR_RETURN(const std::optional<std::string> tail,
                   ReadKey(*store_, leadership_, keys_.Tail()));
  // The tail is read after this daemon became the leader: from then on no other daemon can write,
  // so it stays valid.
  writer_.emplace(*store_, keys_, leadership_, tail.value_or(""), std::move(say));
  ASSIGN_OR_RETURN(const std::optional<std::string> found,
                   ReadKey(*store_, leadership_, keys_.Identity()));
  if (!found.has_value()) return absl::OkStatus();
  pb::journal::Job job;
  if (!job.ParseFromString(*found) || job.job_id().empty()) {
    return absl::DataLossError(absl::StrCat(keys_.Identity(), " in etcd at ", store_->name(),
                                            " is damaged; restore etcd from a backup, or start "
                                            "the job anew with another --job"));
  }
  if (job.format() != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(keys_.Identity(), " in etcd at ",
                                                      store_->name(), " has format ", job.format(),
                                                      "; this version understands ", kFormat));
  }
  job_ = std::move(job);
  return FAILPOINT_STATUS("daemon.etcd.loaded");
}

absl::Status EtcdJobStore::SaveIdentity(const pb::journal::Job& job) {
  pb::journal::Job saved = job;
  saved.set_format(kFormat);
  RETURN_IF_ERROR(writer_->Write({Put(keys_.Identity(), saved.SerializeAsString())}));
  job_ = std::move(saved);
  return absl::OkStatus();
}

absl::StatusOr<store::JobStore::OpenedJournal> EtcdJobStore::OpenJournal(
    const std::string& job_id, const policy::JobSpec& spec, absl::Time now) {
  // The addresses are saved after the journal. So a job that has addresses had a journal, and
  // agents may have attached; without them it may have been interrupted in its first start.
  const bool was_served = job_.has_value() && job_->addresses_size() > 0;
  OpenedJournal opened;
  ASSIGN_OR_RETURN(opened.journal,
                   EtcdJournal::Open(*store_, leadership_, keys_, *writer_, job_id, spec, now,
                                     /*must_exist=*/was_served));
  return opened;
}

void EtcdJobStore::OnLost(std::function<void(const absl::Status& why)> callback) {
  leadership_.OnLost(std::move(callback));
}

}  // namespace hvd::rendezvous::etcd
