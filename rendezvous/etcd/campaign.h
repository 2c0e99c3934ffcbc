// Leader election between the daemons of a job, by a key in etcd with a lease.
#ifndef RENDEZVOUS_ETCD_CAMPAIGN_H_
#define RENDEZVOUS_ETCD_CAMPAIGN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "rendezvous/etcd/key_value_store.h"
#include "rendezvous/etcd/keys.h"

namespace hvd::rendezvous::etcd {

struct Candidate {
  std::string name;        // for messages: the address where it will listen
  bool stands_by = false;  // whether it waits while another daemon leads
};

struct Election {
  int64_t revision = 0;  // create_revision of the leader's key
  int64_t lease = 0;
};

struct CampaignCallbacks {
  std::function<void(const std::string& line)> say;
  std::function<bool()> gives_up;  // polled several times a second; true ends the wait
};

// Blocks until this daemon leads the job.
// Errors:
//   - Cancelled: callbacks.gives_up returned true.
//   - AlreadyExists: another daemon leads, and this one does not stand by.
//   - InvalidArgument: etcd rejects a request; says why.
absl::StatusOr<Election> Campaign(KeyValueStore& store, const JobKeys& keys,
                                  const Candidate& candidate, const CampaignCallbacks& callbacks,
                                  Clock& clock);

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_CAMPAIGN_H_
