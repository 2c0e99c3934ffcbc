#include "rendezvous/membership/decisions/torch_groups.h"

#include <string>

#include "rendezvous/placement/machines.h"

namespace hvd::rendezvous::membership::decisions {

// The search for the worker with local rank 0 starts at rank - local_rank: local ranks ascend with
// ranks, so its rank can't be higher.
TorchGroup TorchGroupOf(const Worker& worker, const Hosts& hosts, const Workers& workers) {
  const std::string& machine = placement::MachineName(hosts[worker.host].slots);
  int rank = worker.place.rank - worker.place.local_rank;
  const Worker* first = workers.Find(StaticWorkerId(rank));
  while (first->place.local_rank != 0 ||
         placement::MachineName(hosts[first->host].slots) != machine) {
    first = workers.Find(StaticWorkerId(--rank));
  }
  return {hosts[workers.Find(StaticWorkerId(0))->host].store_address, first->place.cross_rank,
          first->place.cross_size};
}

}  // namespace hvd::rendezvous::membership::decisions
