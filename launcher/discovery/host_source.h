// The interface of a source of hosts: tells a job which hosts and slots it may use. Sources are the
// command line, a hostfile, a scheduler's allocation, and a host discovery script.
#ifndef LAUNCHER_DISCOVERY_HOST_SOURCE_H_
#define LAUNCHER_DISCOVERY_HOST_SOURCE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cancellation.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::discovery {

// Not thread-safe: one thread at a time may call it.
class HostSource {
 public:
  using Hosts = absl::StatusOr<std::vector<rendezvous::membership::HostSlots>>;

  virtual ~HostSource() = default;

  // The source's name in messages: "the host discovery script /x/hosts.sh".
  virtual std::string name() const = 0;

  // Whether hosts may be added and removed while the job runs. If not, Next returns at once, and
  // always returns the same hosts.
  virtual bool is_dynamic() const = 0;

  // Waits for the next list, and returns all hosts of it. A dynamic source returns every list, even
  // one that is equal to the list before. After an error Next may be called again.
  // Errors, each with one line that names the source:
  //   - Cancelled: `stop` was cancelled.
  //   - Any other code: this attempt failed. Different kinds of failure have different codes; see
  //     the source's header.
  virtual Hosts Next(const Cancellation& stop) = 0;
};

// A source whose hosts never change: those of the command line, a file or an allocation.
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
