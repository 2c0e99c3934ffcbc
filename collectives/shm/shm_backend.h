// Collectives among processes of one host, through shared memory.
#ifndef COLLECTIVES_SHM_SHM_BACKEND_H_
#define COLLECTIVES_SHM_SHM_BACKEND_H_

#include <memory>

#include "collectives/backend.h"

namespace hvd::collectives::shm {

// How large data is written to shared memory.
enum class ShmWriting {
  kProbe,      // as is best for the cores of this group, measured now and then
  kPlain,      // through the caches
  kStreaming,  // past them
};

// REQUIRES: all ranks of a group share a boot and a network namespace, or Connect fails with
// Unavailable.   Connect fails with Unimplemented on all ranks if the group can't share memory.
// Reductions give the same bits on all ranks.
std::unique_ptr<Backend> MakeShmBackend(ShmWriting writing = ShmWriting::kProbe);

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SHM_BACKEND_H_
