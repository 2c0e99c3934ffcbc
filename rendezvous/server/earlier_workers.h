// The workers that were started before a restart of the scheduler, until the new scheduler has
// reported the state of each. A host rejoins the job once all its workers are reported.
#ifndef RENDEZVOUS_SERVER_EARLIER_WORKERS_H_
#define RENDEZVOUS_SERVER_EARLIER_WORKERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::server {

// Pure; not thread-safe.
class EarlierWorkers {
 public:
  EarlierWorkers() = default;
  explicit EarlierWorkers(const std::vector<membership::Membership::AttachedHost>& hosts);

  // The workers that are not reported yet, grouped by host.
  std::vector<EarlierWorker> Unknown() const;

  // The events to post first: HostJoined of each host without such workers.
  std::vector<membership::Event> Begin();

  // Records the report on a worker. `said` is its WorkerStarted or WorkerExited; nullopt: it has no
  // process and must be started again. Returns the events to post now: none until all workers of
  // its host are reported, then HostJoined and the reports. Returns nullopt if no such worker is
  // awaited: the caller posts `said` itself.
  std::optional<std::vector<membership::Event>> Say(WorkerId worker,
                                                    std::optional<membership::Event> said);

  bool IsUnknown(WorkerId worker) const;

 private:
  struct Awaited {
    WorkerId id;
    int64_t pid = 0;
    bool known = false;
    bool start_again = false;
  };
  struct AwaitedHost {
    membership::HostJoined joined;
    std::vector<Awaited> workers;
    std::vector<membership::Event> said;
  };

  static bool IsComplete(const AwaitedHost& host);
  static std::vector<membership::Event> Return(AwaitedHost host);

  std::vector<AwaitedHost> hosts_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_EARLIER_WORKERS_H_
