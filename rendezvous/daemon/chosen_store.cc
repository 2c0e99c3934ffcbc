#include "rendezvous/daemon/chosen_store.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/given_file.h"
#include "rendezvous/etcd/etcd_client.h"
#include "rendezvous/etcd/etcd_job_store.h"
#include "rendezvous/security/certificates.h"
#include "rendezvous/store/file_job_store.h"

namespace hvd::rendezvous::daemon {
namespace {

constexpr size_t kMostMib = 1;

absl::Status Wrong(const char* flag, const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, why));
}

absl::StatusOr<std::string> Contents(const char* flag, const std::string& path) {
  if (path.empty()) return "";
  absl::StatusOr<std::string> text = text::ReadGivenFile(path, kMostMib);
  if (!text.ok()) {
    return Wrong(flag, path, absl::StrCat(" can't be read: ", text.status().message()));
  }
  // It would silently mean no TLS, or no password.
  if (text->empty()) return Wrong(flag, path, " is empty");
  return text;
}

// gRPC would only report that etcd does not answer.
absl::Status CheckCertificates(const EtcdOptions& options, const etcd::EtcdAccess& access) {
  if (access.ca_certificate.empty()) return absl::OkStatus();
  if (!security::CheckPem(access.ca_certificate).ok()) {
    return Wrong("--etcd-ca", options.ca, " holds no certificate in PEM format");
  }
  if (access.certificate.empty()) return absl::OkStatus();
  const absl::Status own =
      security::CheckPem(access.ca_certificate, access.certificate, access.private_key);
  if (own.ok()) return own;
  return Wrong("--etcd-cert and --etcd-key",
               absl::StrCat(options.certificate, " and ", options.key),
               absl::StrCat(" don't fit: ", own.message()));
}

absl::StatusOr<etcd::EtcdAccess> AccessOf(const EtcdOptions& options) {
  etcd::EtcdAccess access;
  access.endpoints = options.endpoints;
  ASSIGN_OR_RETURN(access.ca_certificate, Contents("--etcd-ca", options.ca));
  ASSIGN_OR_RETURN(access.certificate, Contents("--etcd-cert", options.certificate));
  ASSIGN_OR_RETURN(access.private_key, Contents("--etcd-key", options.key));
  ASSIGN_OR_RETURN(const std::string password, Contents("--etcd-password-file", options.password));
  access.user = options.user;
  // Editors end a file with a newline, which is not part of the password.
  access.password = std::string(absl::StripTrailingAsciiWhitespace(password));
  RETURN_IF_ERROR(CheckCertificates(options, access));
  return access;
}

absl::StatusOr<std::unique_ptr<store::JobStore>> OpenEtcd(const RendezvousdOptions& options,
                                                          const store::StoreWait& wait) {
  ASSIGN_OR_RETURN(const etcd::EtcdAccess access, AccessOf(options.etcd));
  etcd::EtcdJobStore::Options chosen;
  chosen.job = options.etcd.job;
  // The candidate's name is its addresses, so that messages of other daemons say where the leader
  // is.
  chosen.candidate = {absl::StrJoin(options.listen, ","), options.etcd.stands_by};
  chosen.reattach = options.job.reattach_timeout;
  return etcd::EtcdJobStore::Open(etcd::NewEtcdClient(access), chosen, {wait.say, wait.gives_up});
}

}  // namespace

absl::StatusOr<std::unique_ptr<store::JobStore>> OpenChosenStore(const RendezvousdOptions& options,
                                                                 const store::StoreWait& wait) {
  if (!options.etcd.endpoints.empty()) return OpenEtcd(options, wait);
  if (options.state_dir.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<store::JobStore>> store =
      store::FileJobStore::Open(options.state_dir);
  if (store.ok()) return store;
  return absl::Status(store.status().code(),
                      absl::StrCat("--state-dir: ", store.status().message()));
}

}  // namespace hvd::rendezvous::daemon
