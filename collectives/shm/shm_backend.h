// The backend for collectives among processes of one host, through shared memory.
#ifndef COLLECTIVES_SHM_SHM_BACKEND_H_
#define COLLECTIVES_SHM_SHM_BACKEND_H_

#include <memory>

#include "collectives/backend.h"

namespace hvd::collectives::shm {

// The way to write large data to shared memory.
enum class ShmWriting {
  kProbe,      // the better one for the cores of this group, measured repeatedly
  kPlain,      // through the caches
  kStreaming,  // past them
};

// REQUIRES: all ranks of a group share a boot and a network namespace. Reductions give the same
// bits on all ranks.
// Errors of Connect: those of Backend, and
//   - Unavailable: ranks don't share a boot or a network namespace.
//   - Unimplemented: the group can't share memory; the same on all ranks.
std::unique_ptr<Backend> MakeShmBackend(ShmWriting writing = ShmWriting::kProbe);

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SHM_BACKEND_H_
