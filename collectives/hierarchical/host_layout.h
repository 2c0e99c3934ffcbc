// Which ranks of a group share a host. Pure.
#ifndef COLLECTIVES_HIERARCHICAL_HOST_LAYOUT_H_
#define COLLECTIVES_HIERARCHICAL_HOST_LAYOUT_H_

#include <string>
#include <vector>

namespace hvd::collectives::hierarchical {

// As one rank sees it. Column j is made of the j-th rank of every host, in the order of the hosts;
// there are as many as the smallest host has ranks.
struct HostLayout {
  std::vector<std::vector<int>> hosts;  // ascending ranks; hosts in the order of their first rank
  int host = 0;                         // of this rank
  int index = 0;                        // of this rank among its host's

  const std::vector<int>& members() const { return hosts[host]; }
  bool OneHost() const { return hosts.size() == 1; }
  bool AllApart() const;
  // Ranks follow each other host by host.
  bool IsContiguous() const;
  int columns() const;
  // REQUIRES: j < columns()
  std::vector<int> Column(int j) const;
  // The host of any rank, and which of its members that is; -1 for ranks that there are not.
  struct Place {
    int host = -1;
    int index = -1;
  };
  Place PlaceOf(int rank) const;
};

// identities[r] stands for rank r's host; equal ones share it, but for empty ones.
HostLayout LayOutHosts(const std::vector<std::string>& identities, int rank);

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HOST_LAYOUT_H_
