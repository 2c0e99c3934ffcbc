// The interface of sources of a job's hosts: the command line, a discovery script, a scheduler's
// allocation.
#ifndef LAUNCHER_DISCOVERY_HOST_SOURCE_H_
#define LAUNCHER_DISCOVERY_HOST_SOURCE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cancellation.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// Not thread-safe: for one thread at a time.
class HostSource {
 public:
  using Hosts = absl::StatusOr<std::vector<rendezvous::membership::HostSlots>>;

  virtual ~HostSource() = default;

  // Its name in messages: "the host discovery script /x/hosts.sh".
  virtual std::string name() const = 0;

  // Whether hosts may come and go while the job runs. If not, Next answers at once and always
  // returns the same hosts.
  virtual bool is_dynamic() const = 0;

  // Waits for the next list and returns all hosts. After an error it may be called again.
  // Errors: one line that names the source.
  //   - Cancelled: `stop` was cancelled.
  //   - any other: this attempt failed. Each kind of failure has a separate code.
  virtual Hosts Next(const Cancellation& stop) = 0;
};

// The hosts given by the command line or a file.
class FixedHosts : public HostSource {
 public:
  explicit FixedHosts(std::vector<rendezvous::membership::HostSlots> hosts)
      : hosts_(std::move(hosts)) {}

  std::string name() const override { return "the list of hosts"; }
  bool is_dynamic() const override { return false; }
  Hosts Next(const Cancellation&) override { return hosts_; }

 private:
  const std::vector<rendezvous::membership::HostSlots> hosts_;
};

}  // namespace hvd::launcher::discovery

#endif  // LAUNCHER_DISCOVERY_HOST_SOURCE_H_
