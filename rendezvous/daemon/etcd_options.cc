#include "rendezvous/daemon/etcd_options.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/net/address.h"
#include "base/status_macros.h"
#include "base/text/names.h"

namespace hvd::rendezvous::daemon {
namespace {

absl::Status ParseEndpoints(const std::string& text, EtcdOptions* options) {
  options->endpoints = absl::StrSplit(text, ',');
  for (const std::string& endpoint : options->endpoints) {
    const net::HostPort parts = net::SplitHostPort(endpoint);
    int port = 0;
    if (parts.host.empty() || absl::StrContains(parts.host, '/') ||
        !absl::SimpleAtoi(parts.port, &port) || port < 1 || port > 65535) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--etcd: '", endpoint, "' is not a host and a port, as etcd1:2379 or [fd00::1]:2379"));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseJob(const std::string& text, EtcdOptions* options) {
  options->job = text;
  // The name is a part of the keys. With a '/' the keys of one job could be within those of
  // another.
  if (text.empty() || absl::StrContains(text, '/')) {
    return absl::InvalidArgumentError(
        absl::StrCat("--job: '", text, "' is no name of a job: one without '/', as training-7"));
  }
  return text::CheckName("--job", text);
}

void Text(options::FlagTable& flags, const std::string& name, const std::string& kind,
          const std::string& help, std::string* target) {
  flags.Value(name, kind, help, [name, target](const std::string& text) {
    *target = text;
    return text.empty() ? absl::InvalidArgumentError(absl::StrCat(name, " is empty"))
                        : absl::OkStatus();
  });
}

absl::Status Missing(const std::string& flag, const std::string& needed) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " needs ", needed));
}

absl::Status CheckAccess(const EtcdOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    return options.key.empty() ? Missing("--etcd-cert", "--etcd-key")
                               : Missing("--etcd-key", "--etcd-cert");
  }
  // Without a CA the connection is plain TCP, which would silently ignore the certificate.
  if (!options.certificate.empty() && options.ca.empty())
    return Missing("--etcd-cert", "--etcd-ca");
  if (options.user.empty() != options.password.empty()) {
    return options.user.empty() ? Missing("--etcd-password-file", "--etcd-user")
                                : Missing("--etcd-user", "--etcd-password-file");
  }
  return absl::OkStatus();
}

absl::Status CheckWithoutEtcd(const EtcdOptions& options) {
  if (!options.job.empty()) return Missing("--job", "--etcd: only there jobs have names");
  if (options.stands_by) return Missing("--standby", "--etcd: where another daemon is known");
  for (const auto& [flag, value] :
       {std::pair<const char*, const std::string&>{"--etcd-ca", options.ca},
        {"--etcd-cert", options.certificate},
        {"--etcd-key", options.key},
        {"--etcd-user", options.user},
        {"--etcd-password-file", options.password}}) {
    if (!value.empty()) return Missing(flag, "--etcd");
  }
  return absl::OkStatus();
}

}  // namespace

void DeclareEtcd(options::FlagTable& flags, EtcdOptions* options) {
  flags.Group("Etcd");
  flags.Value("--etcd", "HOST:PORT,...",
              "Store the job in this etcd cluster, so that any of its daemons can resume it",
              [options](const std::string& text) { return ParseEndpoints(text, options); });
  flags.Value("--job", "NAME", "The job's name in etcd, the same for all its daemons",
              [options](const std::string& text) { return ParseJob(text, options); });
  flags.Flag("--standby", "If another daemon leads the job, wait to take its place",
             [options] { options->stands_by = true; });
  Text(flags, "--etcd-ca", "FILE", "Use TLS, and check etcd's certificates against this CA",
       &options->ca);
  Text(flags, "--etcd-cert", "FILE", "This daemon's certificate for etcd", &options->certificate);
  Text(flags, "--etcd-key", "FILE", "The private key of that certificate", &options->key);
  Text(flags, "--etcd-user", "NAME", "The user name for etcd", &options->user);
  Text(flags, "--etcd-password-file", "FILE", "Contains the user's password", &options->password);
}

absl::Status CheckEtcd(const EtcdOptions& options, const std::vector<std::string>& listen,
                       bool has_state_dir) {
  if (options.endpoints.empty()) return CheckWithoutEtcd(options);
  if (has_state_dir) {
    return absl::InvalidArgumentError(
        "--etcd can't be given with --state-dir: the job is kept in one of them");
  }
  if (options.job.empty()) {
    return absl::InvalidArgumentError("--job is missing: under which name does etcd keep the job?");
  }
  for (const std::string& address : listen) {
    if (net::SplitHostPort(address).port != "0") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--listen: ", address,
                     " has port 0; with --etcd give a fixed port, at which agents look for this "
                     "daemon once it leads"));
  }
  return CheckAccess(options);
}

}  // namespace hvd::rendezvous::daemon
