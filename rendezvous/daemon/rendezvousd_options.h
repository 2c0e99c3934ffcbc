// The command line of horovod-rendezvousd.
#ifndef RENDEZVOUS_DAEMON_RENDEZVOUSD_OPTIONS_H_
#define RENDEZVOUS_DAEMON_RENDEZVOUSD_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "rendezvous/daemon/etcd_options.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::daemon {

struct RendezvousdOptions {
  std::vector<std::string> listen;
  policy::JobSpec job;
  absl::Duration agent_timeout = absl::Seconds(30);
  std::string token_file;  // empty: none
  int owner = -1;          // the owner's socket; -1: none
  std::string state_dir;   // empty: no state directory
  EtcdOptions etcd;
  std::string metrics;    // an address; empty: none
  std::string event_log;  // a file; empty: none
};

// The result of parsing a command line: options for a daemon, or else a text for the user and an
// exit code (0: --help and --version, for stdout; 2: one line for stderr that names the mistake).
struct RendezvousdCommand {
  std::optional<RendezvousdOptions> options;
  std::string text;
  int exit_code = 0;
};

// Parses `args`, which do not include the program's name. Pure.
RendezvousdCommand ParseRendezvousdCommand(const std::vector<std::string>& args,
                                           const Environment& environment);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_RENDEZVOUSD_OPTIONS_H_
