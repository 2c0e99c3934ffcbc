// The backend for collectives among processes of one host, through shared memory.
#ifndef COLLECTIVES_SHM_SHM_BACKEND_H_
#define COLLECTIVES_SHM_SHM_BACKEND_H_

#include <memory>

#include "collectives/backend.h"

namespace hvd::collectives::shm {

// How ranks write large data to shared memory.
enum class ShmWriting {
  kProbe,      // the better of the two for the cores of this group, measured repeatedly
  kPlain,      // through the caches
  kStreaming,  // with non-temporal stores, which bypass the caches
};

// Reductions are bitwise equal on all ranks.
// REQUIRES: all ranks of a group share a boot of the kernel and a network namespace.
// Errors of Connect: those of Backend, and
//   - Unavailable: ranks don't share a boot or a network namespace.
//   - Unimplemented: the group can't share memory; the same on all ranks.
std::unique_ptr<Backend> MakeShmBackend(ShmWriting writing = ShmWriting::kProbe);

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SHM_BACKEND_H_
