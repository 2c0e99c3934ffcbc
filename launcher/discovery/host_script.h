// Runs a host discovery script again and again.
#ifndef LAUNCHER_DISCOVERY_HOST_SCRIPT_H_
#define LAUNCHER_DISCOVERY_HOST_SCRIPT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

struct HostScriptOptions {
  std::string path;        // of an executable file
  int slots_per_host = 0;  // see ParseDiscoveredHosts
  absl::Duration time_limit = absl::Seconds(10);
  absl::Duration pause = absl::Seconds(1);  // from the end of one run to the next
};

// As long as it lives, a thread of its own runs the script through /bin/sh, without arguments, with
// this process's environment, and tells the result of each run.
class HostScript {
 public:
  // The hosts, or in one line why there are none; the message names the script.
  //   FailedPrecondition: it failed; with the end of what it said.   DeadlineExceeded: it took too
  //   long.   InvalidArgument: it printed what is no list.   Unavailable: it can't be run.
  using OnResult =
      std::function<void(absl::StatusOr<std::vector<rendezvous::membership::HostSlots>>)>;

  // `on_result` is called by the thread.   ResourceExhausted: too many open files.
  static absl::StatusOr<std::unique_ptr<HostScript>> Start(HostScriptOptions options,
                                                           OnResult on_result);
  // Kills a run that is under way, with its process group, and does not wait for anything else.
  virtual ~HostScript() = default;
};

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_HOST_SCRIPT_H_
