// The options of horovod-rendezvousd for a job store in etcd.
#ifndef RENDEZVOUS_DAEMON_ETCD_OPTIONS_H_
#define RENDEZVOUS_DAEMON_ETCD_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "options/flag_table.h"

namespace hvd::rendezvous::daemon {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "host:port"; none: the job is not kept in etcd
  std::string job;
  bool stands_by = false;
  // Files; empty: none.
  std::string ca;
  std::string certificate;
  std::string key;
  std::string password;
  std::string user;
};

void DeclareEtcd(options::FlagTable& flags, EtcdOptions* options);

// Checks the options against each other and against the addresses to listen on.
// Errors:
//   - InvalidArgument: one line for the user, on what is missing or wrong.
absl::Status CheckEtcd(const EtcdOptions& options, const std::vector<std::string>& listen,
                       bool has_state_dir);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_ETCD_OPTIONS_H_
