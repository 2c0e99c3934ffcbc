// The machines of hosts. A host is what one agent looks after; hosts whose workers share memory,
// devices and cores are on one machine. Local ranks count within machines.
#ifndef RENDEZVOUS_PLACEMENT_MACHINES_H_
#define RENDEZVOUS_PLACEMENT_MACHINES_H_

#include <string>
#include <vector>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

// The name of the host's machine: the host's own, unless it says another one.
const std::string& MachineName(const HostSlots& host);

// The machine of each host, as the index of the first host that is on it. Pure.
std::vector<int> MachinesOf(const std::vector<const HostSlots*>& hosts);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_MACHINES_H_
