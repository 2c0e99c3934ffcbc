// A simulation of several hosts by ranks of one process, for tests.
#ifndef COLLECTIVES_HIERARCHICAL_ON_HOSTS_TESTING_H_
#define COLLECTIVES_HIERARCHICAL_ON_HOSTS_TESTING_H_

#include <functional>
#include <memory>
#include <string>

#include "collectives/hierarchical/hierarchical_backend.h"
#include "collectives/mesh.h"

namespace hvd::collectives::hierarchical {

struct FakeHosts {
  // The host identity of a rank. Ranks with the same one share a `local` backend.
  std::function<std::string(int rank)> host_of;
  std::function<std::unique_ptr<Backend>(const std::string& host)> make_local;
  std::function<std::unique_ptr<MeshBackend>()> make_across;
  std::function<HierarchyOptions(int rank)> options_of = [](int) { return HierarchyOptions(); };
};

// One backend object that stands for the backends of all ranks.
std::unique_ptr<Backend> MakeBackendOnHosts(FakeHosts hosts);

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_ON_HOSTS_TESTING_H_
