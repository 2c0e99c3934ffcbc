// The host discovery script as a source of hosts.
#ifndef LAUNCHER_DISCOVERY_HOST_SCRIPT_H_
#define LAUNCHER_DISCOVERY_HOST_SCRIPT_H_

#include <string>

#include "absl/time/time.h"
#include "launcher/discovery/host_source.h"

namespace hvd::launcher::discovery {

struct HostScriptOptions {
  std::string path;        // of an executable file
  int slots_per_host = 0;  // see ParseDiscoveredHosts
  absl::Duration time_limit = absl::Seconds(10);
  absl::Duration pause = absl::Seconds(1);  // from the end of one run to the next
};

// Next runs the script once, after the pause, through /bin/sh, without arguments and with this
// process's environment. The thread that calls it must block this process's signals.
class HostScript : public HostSource {
 public:
  explicit HostScript(HostScriptOptions options);

  std::string name() const override;
  bool is_dynamic() const override { return true; }

  // A run in progress when `stop` is cancelled is killed, with its process group.
  // Errors:
  //   - FailedPrecondition: it failed; with the end of its output.
  //   - DeadlineExceeded: it took too long, and was killed.
  //   - InvalidArgument: its output is not a list of hosts.
  //   - Unavailable: it can't be run.
  //   - Cancelled: `stop` was cancelled.
  Hosts Next(const Cancellation& stop) override;

 private:
  const HostScriptOptions options_;
  bool has_run_ = false;
};

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_HOST_SCRIPT_H_
