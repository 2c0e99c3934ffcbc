// The two sides of a meeting; see Meet.
#ifndef COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_SIDES_H_
#define COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_SIDES_H_

#include "absl/status/statusor.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "collectives/key_exchange.h"
#include "collectives/shm/segment/segment_setup.h"
#include "collectives/types.h"

namespace hvd::collectives::shm::segment {

// Rank 0's: makes the memory and hands it to all who prove that they belong here.
absl::StatusOr<Meeting> Host(const GroupInfo& group, KeyExchange& keys, Fd bell,
                             const WaitBounds& bounds);

// Every other rank's.
absl::StatusOr<Meeting> Attend(const GroupInfo& group, KeyExchange& keys, Fd bell,
                               const WaitBounds& bounds);

}  // namespace hvd::collectives::shm::segment

#endif  // COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_SIDES_H_
