// The grouping of hosts into machines. A host has one agent; hosts whose workers share memory,
// devices and cores are on one machine. Local ranks count within machines.
#ifndef RENDEZVOUS_PLACEMENT_MACHINES_H_
#define RENDEZVOUS_PLACEMENT_MACHINES_H_

#include <string>
#include <vector>

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

// The name of the host's machine: HostSlots::machine, or the host's name if that is empty.
const std::string& MachineName(const HostSlots& host);

// For each host, the index of the first host on the same machine. Pure.
std::vector<int> MachinesOf(const std::vector<const HostSlots*>& hosts);

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_MACHINES_H_
