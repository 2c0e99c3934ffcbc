// The command line options that differ between two daemons of a stored job.
#ifndef RENDEZVOUS_DAEMON_CHANGED_OPTIONS_H_
#define RENDEZVOUS_DAEMON_CHANGED_OPTIONS_H_

#include <string>
#include <vector>

#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::daemon {

// The names of the options that lead from one specification to the other, such as "--np". Empty if
// the specifications are the same to the daemon.
std::vector<std::string> ChangedOptions(const policy::JobSpec& then, const policy::JobSpec& now);

}  // namespace hvd::rendezvous::daemon

#endif  // RENDEZVOUS_DAEMON_CHANGED_OPTIONS_H_
