// A host source that runs the user's host discovery script.
#ifndef LAUNCHER_DISCOVERY_HOST_SCRIPT_H_
#define LAUNCHER_DISCOVERY_HOST_SCRIPT_H_

#include <string>

#include "absl/time/time.h"
#include "launcher/discovery/host_source.h"

namespace hvd::launcher::discovery {

struct HostScriptOptions {
  std::string path;         // of an executable file
  bool is_command = false;  // `path` is a command with arguments, for the shell
  int slots_per_host = 0;   // see ParseDiscoveredHosts
  absl::Duration time_limit = absl::Seconds(10);
  absl::Duration pause = absl::Seconds(1);  // from the end of one run to the next
};

// Next waits for the pause and runs the script once through /bin/sh, with this process's
// environment. The calling thread must block the signals that the process handles.
class HostScript : public HostSource {
 public:
  explicit HostScript(HostScriptOptions options);

  std::string name() const override;
  bool is_dynamic() const override { return true; }

  // A run in progress when `stop` is cancelled is killed, with its process group.
  // Errors:
  //   - FailedPrecondition: the script failed; quotes the end of its output.
  //   - DeadlineExceeded: the script exceeded its time limit and was killed.
  //   - InvalidArgument: its output is not a list of hosts.
  //   - Unavailable: the script can't be started.
  //   - Cancelled: `stop` was cancelled.
  Hosts Next(const Cancellation& stop) override;

 private:
  const HostScriptOptions options_;
  bool has_run_ = false;
};

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_HOST_SCRIPT_H_
