// The grouping of a group's ranks by host. Pure.
#ifndef COLLECTIVES_HIERARCHICAL_HOST_LAYOUT_H_
#define COLLECTIVES_HIERARCHICAL_HOST_LAYOUT_H_

#include <string>
#include <vector>

namespace hvd::collectives::hierarchical {

// The view of one rank. Column j consists of the j-th rank of every host, in the order of the
// hosts; the smallest host's number of ranks is the number of columns.
struct HostLayout {
  std::vector<std::vector<int>> hosts;  // ascending ranks; hosts in the order of their first rank
  int host = 0;                         // of this rank
  int index = 0;                        // of this rank among those of its host

  const std::vector<int>& members() const { return hosts[host]; }
  bool OneHost() const { return hosts.size() == 1; }
  bool AllApart() const;
  // Whether the ranks are numbered host by host.
  bool IsContiguous() const;
  // Whether all hosts have the same number of ranks.
  bool HasEqualHosts() const;
  int columns() const;
  // REQUIRES: j < columns()
  std::vector<int> Column(int j) const;
  // The host of any rank, and its index among the host's members; -1 for ranks that don't exist.
  struct Place {
    int host = -1;
    int index = -1;
  };
  Place PlaceOf(int rank) const;
};

// identities[r] names rank r's host. Ranks with equal ones share it, except with empty ones.
HostLayout LayOutHosts(const std::vector<std::string>& identities, int rank);

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HOST_LAYOUT_H_
