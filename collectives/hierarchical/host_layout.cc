#include "collectives/hierarchical/host_layout.h"

#include <algorithm>
#include <map>

namespace hvd::collectives::hierarchical {

bool HostLayout::AllApart() const {
  return std::all_of(hosts.begin(), hosts.end(),
                     [](const std::vector<int>& ranks) { return ranks.size() == 1; });
}

bool HostLayout::IsContiguous() const {
  int next = 0;
  for (const std::vector<int>& ranks : hosts) {
    for (const int rank : ranks) {
      if (rank != next++) return false;
    }
  }
  return true;
}

bool HostLayout::HasEqualHosts() const {
  return std::all_of(hosts.begin(), hosts.end(), [this](const std::vector<int>& ranks) {
    return ranks.size() == hosts[0].size();
  });
}

int HostLayout::columns() const {
  size_t smallest = hosts[0].size();
  for (const std::vector<int>& ranks : hosts) smallest = std::min(smallest, ranks.size());
  return static_cast<int>(smallest);
}

std::vector<int> HostLayout::Column(int j) const {
  std::vector<int> column;
  column.reserve(hosts.size());
  for (const std::vector<int>& ranks : hosts) column.push_back(ranks[j]);
  return column;
}

HostLayout::Place HostLayout::PlaceOf(int rank) const {
  for (size_t h = 0; h < hosts.size(); ++h) {
    const auto found = std::find(hosts[h].begin(), hosts[h].end(), rank);
    if (found != hosts[h].end()) {
      return {static_cast<int>(h), static_cast<int>(found - hosts[h].begin())};
    }
  }
  return {};
}

HostLayout LayOutHosts(const std::vector<std::string>& identities, int rank) {
  HostLayout layout;
  std::map<std::string, size_t> known;
  for (size_t r = 0; r < identities.size(); ++r) {
    // A new host, unless an earlier rank has the same identity. An empty identity equals no other.
    size_t host = layout.hosts.size();
    if (!identities[r].empty()) host = known.emplace(identities[r], host).first->second;
    if (host == layout.hosts.size()) layout.hosts.emplace_back();
    layout.hosts[host].push_back(static_cast<int>(r));
  }
  const HostLayout::Place place = layout.PlaceOf(rank);
  layout.host = place.host;
  layout.index = place.index;
  return layout;
}

}  // namespace hvd::collectives::hierarchical
