// Ranks of one process as if they were on several hosts.
#ifndef COLLECTIVES_HIERARCHICAL_ON_HOSTS_TESTING_H_
#define COLLECTIVES_HIERARCHICAL_ON_HOSTS_TESTING_H_

#include <functional>
#include <memory>
#include <string>

#include "collectives/hierarchical/hierarchical_backend.h"
#include "collectives/mesh.h"

namespace hvd::collectives::hierarchical {

struct FakeHosts {
  // The identity that a rank shows. Ranks with the same one share a `local` backend.
  std::function<std::string(int rank)> host_of;
  std::function<std::unique_ptr<Backend>(const std::string& host)> make_local;
  std::function<std::unique_ptr<MeshBackend>()> make_across;
  std::function<HierarchyOptions(int rank)> options_of = [](int) { return HierarchyOptions(); };
};

// Behind one object what every rank would make for itself.
std::unique_ptr<Backend> MakeBackendOnHosts(FakeHosts hosts);

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_ON_HOSTS_TESTING_H_
