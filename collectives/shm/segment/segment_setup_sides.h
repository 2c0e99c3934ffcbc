// The two sides of a segment setup; see SetUpSegment.
#ifndef COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_SIDES_H_
#define COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_SIDES_H_

#include "absl/status/statusor.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "collectives/key_exchange.h"
#include "collectives/shm/segment/segment_setup.h"
#include "collectives/types.h"

namespace hvd::collectives::shm::segment {

// Rank 0's side: makes the memory and sends it to all ranks that prove their membership.
// Errors: those of SetUpSegment.
absl::StatusOr<SegmentSetup> SetUpAsHost(const GroupInfo& group, KeyExchange& keys, Fd bell,
                                         const WaitBounds& bounds);

// The side of every other rank.
// Errors: those of SetUpSegment.
absl::StatusOr<SegmentSetup> SetUpAsGuest(const GroupInfo& group, KeyExchange& keys, Fd bell,
                                          const WaitBounds& bounds);

}  // namespace hvd::collectives::shm::segment

#endif  // COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_SIDES_H_
