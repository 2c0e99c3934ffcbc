// The campaign of a daemon for the leadership of a job.
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
  std::string name;        // for messages: where it will listen
  bool stands_by = false;  // waits while another daemon leads
};

struct Election {
  int64_t revision = 0;  // at which the leader's key was made
  int64_t lease = 0;
};

struct CampaignCallbacks {
  std::function<void(const std::string& line)> say;
  std::function<bool()> gives_up;  // asked several times a second
};

// Returns when this daemon leads.
// Errors:
//   - Cancelled: it gave up.
//   - AlreadyExists: another daemon leads, and this one does not stand by.
//   - InvalidArgument: etcd refuses it; says why.
absl::StatusOr<Election> Campaign(KeyValueStore& store, const JobKeys& keys,
                                  const Candidate& candidate, const CampaignCallbacks& callbacks,
                                  Clock& clock);

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_CAMPAIGN_H_
