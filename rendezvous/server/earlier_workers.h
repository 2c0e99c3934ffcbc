// The workers that an earlier scheduler has started, until its successor says what became of each.
// A host takes part in the job again once this is known of all its workers.
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

  // Those of whom nothing is known yet, by host.
  std::vector<EarlierWorker> Unknown() const;

  // The events that are due before anything is said: hosts without such workers.
  std::vector<membership::Event> Begin();

  // `said`: that the worker still runs, or how it ended; null: it has no process and is to be
  // started again. Returns the events that are due now: none until all workers of its host are
  // known, then the host's return and all that was said. nullopt: no such worker is awaited; what
  // was said is due at once.
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
