#include "rendezvous/store/job_parts.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "proto/journal.pb.h"
#include "rendezvous/journal/spec_codec.h"

namespace hvd::rendezvous::store {
namespace {

constexpr size_t kRandomBytes = 32;

pb::journal::Job ToMessage(const JobParts& parts, const JobTerms& terms) {
  pb::journal::Job message;
  message.set_job_id(terms.id);
  *message.mutable_spec() = journal::ToSpecMessage(terms.spec);
  message.mutable_hosts()->set_token(parts.token);
  message.set_secret_key(parts.secret_key);
  message.set_starts_workers(terms.starts_workers);
  return message;
}

absl::Status CheckSame(const pb::journal::Job& kept, const JobTerms& terms,
                       const std::string& where) {
  if (kept.starts_workers() != terms.starts_workers) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job ", kept.job_id(), " in ", where, " has processes that ",
        kept.starts_workers() ? "start_worker has started: give it, and stop_worker"
                              : "agents have started: give no start_worker and no stop_worker"));
  }
  // Compares the serialized specs: the messages have no maps, so their serialization is
  // deterministic.
  const std::string asked = journal::ToSpecMessage(terms.spec).SerializeAsString();
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

absl::StatusOr<JobParts> OpenJobParts(std::unique_ptr<JobStore> store, const JobTerms& terms,
                                      absl::Time now) {
  // The identity is durable before a worker or an agent gets these secrets, so a later process can
  // still serve them.
  JobParts parts = NewJobParts();
  if (!store->identity().has_value()) {
    RETURN_IF_ERROR(store->SaveIdentity(ToMessage(parts, terms)));
  } else {
    const pb::journal::Job& kept = *store->identity();
    RETURN_IF_ERROR(CheckSame(kept, terms, store->name()));
    parts.token = kept.hosts().token();
    parts.secret_key = kept.secret_key();
  }
  ASSIGN_OR_RETURN(JobStore::OpenedJournal opened, store->OpenJournal(terms.id, terms.spec, now));
  parts.journal = std::move(opened.journal);
  parts.store = std::move(store);
  return parts;
}

absl::Status SaveAsBegun(const JobParts& parts, const std::vector<std::string>& addresses) {
  pb::journal::Job message = *parts.store->identity();
  message.clear_addresses();
  for (const std::string& address : addresses) message.add_addresses(address);
  return parts.store->SaveIdentity(message);
}

JobTerms TermsOf(const JobStore& store) {
  const pb::journal::Job& identity = *store.identity();
  return {identity.job_id(), journal::FromSpecMessage(identity.spec()), identity.starts_workers()};
}

}  // namespace hvd::rendezvous::store
