#include "rendezvous/daemon/persistent_job.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "rendezvous/daemon/changed_options.h"
#include "rendezvous/journal/spec_codec.h"
#include "rendezvous/security/credentials_message.h"

namespace hvd::rendezvous::daemon {
namespace {

constexpr size_t kSecretKeyBytes = 32;

pb::journal::Job ToMessage(const PersistentJob& job, const policy::JobSpec& spec) {
  pb::journal::Job message;
  message.set_job_id(job.job_id);
  *message.mutable_spec() = journal::ToSpecMessage(spec);
  *message.mutable_daemon() = security::ToMessage(job.daemon);
  *message.mutable_hosts() = security::ToMessage(job.hosts);
  message.set_secret_key(job.secret_key);
  for (const std::string& address : job.listen) message.add_listen(address);
  return message;
}

}  // namespace

absl::StatusOr<PersistentJob> NewJob(const std::vector<std::string>& listen) {
  PersistentJob job;
  job.job_id = security::NewJobId();
  // The CA's key is destroyed on return, so that no further certificate can be issued.
  ASSIGN_OR_RETURN(const std::unique_ptr<security::JobAuthority> authority,
                   security::JobAuthority::Create(job.job_id));
  ASSIGN_OR_RETURN(job.daemon, authority->IssueForDaemon());
  ASSIGN_OR_RETURN(job.hosts, authority->IssueForHost(security::kAnyHost));
  job.secret_key = RandomBytes(kSecretKeyBytes);
  job.listen = listen;
  return job;
}

absl::StatusOr<PersistentJob> OpenPersistentJob(store::JobStore& store, const policy::JobSpec& spec,
                                                const std::vector<std::string>& listen) {
  if (!store.identity().has_value()) {
    ASSIGN_OR_RETURN(PersistentJob job, NewJob(listen));
    RETURN_IF_ERROR(store.SaveIdentity(ToMessage(job, spec)));
    return job;
  }
  const pb::journal::Job& kept = *store.identity();
  const std::vector<std::string> asked_then(kept.listen().begin(), kept.listen().end());
  const store::JobStore::Terms terms = store.terms();
  // The options as they were given are compared, not the addresses listened on: port 0 has become a
  // real port there. With etcd each daemon of the job has addresses of its own.
  std::vector<std::string> changed = ChangedOptions(journal::FromSpecMessage(kept.spec()), spec);
  if (terms.keeps_addresses && asked_then != listen) {
    changed.push_back(absl::StrCat("--listen, which was ", absl::StrJoin(asked_then, ", ")));
  }
  if (!changed.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(terms.option, ": ", store.name(), " holds the job ", kept.job_id(),
                     ", which was started with other options (", absl::StrJoin(changed, ", "),
                     "); give the same ones, or another ", terms.option, " for another job"));
  }
  PersistentJob job{kept.job_id(), security::FromMessage(kept.daemon()),
                    security::FromMessage(kept.hosts()), kept.secret_key(), listen};
  if (terms.keeps_addresses && kept.addresses_size() > 0)
    // Agents and workers look for the daemon at the earlier ports.
    job.listen.assign(kept.addresses().begin(), kept.addresses().end());
  return job;
}

absl::Status KeepAddresses(store::JobStore& store, const std::vector<std::string>& addresses) {
  pb::journal::Job job = *store.identity();
  job.clear_addresses();
  for (const std::string& address : addresses) job.add_addresses(address);
  return store.SaveIdentity(job);
}

}  // namespace hvd::rendezvous::daemon
