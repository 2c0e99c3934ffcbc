#include "rendezvous/placement/machines.h"

#include <map>

#include "absl/strings/string_view.h"

namespace hvd::rendezvous::placement {

const std::string& MachineName(const HostSlots& host) {
  return host.machine.empty() ? host.host : host.machine;
}

std::vector<int> MachinesOf(const std::vector<const HostSlots*>& hosts) {
  std::vector<int> machines;
  std::map<absl::string_view, int> first;  // host by name of the machine
  for (const HostSlots* host : hosts) {
    const auto entry = first.emplace(MachineName(*host), static_cast<int>(machines.size()));
    machines.push_back(entry.first->second);
  }
  return machines;
}

}  // namespace hvd::rendezvous::placement
