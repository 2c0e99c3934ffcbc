#include "rendezvous/server/kept_job.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "proto/journal.pb.h"
#include "rendezvous/journal/spec_codec.h"
#include "rendezvous/server/saved_job.h"

namespace hvd::rendezvous::server {
namespace {

constexpr size_t kRandomBytes = 32;

pb::journal::Job ToMessage(const JobParts& parts, const ServedJobOptions& options) {
  pb::journal::Job message;
  message.set_job_id(options.job_id);
  *message.mutable_spec() = journal::ToSpecMessage(options.spec);
  message.mutable_hosts()->set_token(parts.token);
  message.set_secret_key(parts.secret_key);
  message.set_starts_workers(options.start_worker != nullptr);
  return message;
}

absl::Status CheckSame(const pb::journal::Job& kept, const ServedJobOptions& options,
                       const std::string& where) {
  if (kept.starts_workers() != (options.start_worker != nullptr)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job ", kept.job_id(), " in ", where, " has processes that ",
        kept.starts_workers() ? "start_worker has started: give it, and stop_worker"
                              : "agents have started: give no start_worker and no stop_worker"));
  }
  const std::string asked = journal::ToSpecMessage(options.spec).SerializeAsString();
  if (kept.spec().SerializeAsString() == asked) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the job ", kept.job_id(), " in ", where,
                   " was begun with other options; give the same ones (its limits may be changed "
                   "then), or forget it"));
}

}  // namespace

JobParts NewJobParts() {
  JobParts parts;
  parts.token = absl::BytesToHexString(RandomBytes(kRandomBytes));
  parts.secret_key = RandomBytes(kRandomBytes);
  return parts;
}

absl::StatusOr<JobParts> OpenJobParts(std::unique_ptr<store::JobStore> store,
                                      const ServedJobOptions& options, absl::Time now) {
  JobParts parts = NewJobParts();
  if (!store->identity().has_value()) {
    RETURN_IF_ERROR(store->SaveIdentity(ToMessage(parts, options)));
  } else {
    const pb::journal::Job& kept = *store->identity();
    RETURN_IF_ERROR(CheckSame(kept, options, store->name()));
    parts.token = kept.hosts().token();
    parts.secret_key = kept.secret_key();
    parts.worker_socket = kept.worker_socket();
  }
  ASSIGN_OR_RETURN(store::JobStore::OpenedJournal opened,
                   store->OpenJournal(options.job_id, options.spec, now));
  parts.journal = std::move(opened.journal);
  parts.store = std::move(store);
  return parts;
}

absl::Status SaveAsBegun(const JobParts& parts, const std::string& worker_socket,
                         const std::vector<std::string>& addresses) {
  pb::journal::Job message = *parts.store->identity();
  message.set_worker_socket(worker_socket);
  message.clear_addresses();
  for (const std::string& address : addresses) message.add_addresses(address);
  return parts.store->SaveIdentity(message);
}

KeptJob Describe(store::JobStore& store, absl::Time now) {
  const pb::journal::Job& identity = *store.identity();
  KeptJob kept;
  kept.id = identity.job_id();
  kept.spec = journal::FromSpecMessage(identity.spec());
  kept.starts_workers = identity.starts_workers();
  const auto opened = store.OpenJournal(kept.id, kept.spec, now);
  kept.problem = opened.status();
  if (!opened.ok()) return kept;
  const auto recovered = Recover(kept.spec, *opened->journal);
  kept.problem = recovered.status();
  if (recovered.ok()) kept.ended = recovered->verdict;
  return kept;
}

}  // namespace hvd::rendezvous::server
