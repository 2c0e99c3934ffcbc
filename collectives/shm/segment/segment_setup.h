// The setup of the segment that the ranks of one host share.
#ifndef COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_H_
#define COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "collectives/key_exchange.h"
#include "collectives/shm/segment/segment.h"
#include "collectives/types.h"

namespace hvd::collectives::shm::segment {

// The result of the setup, for one rank.
struct SegmentSetup {
  Segment segment;
  std::vector<Fd> bells;  // an eventfd of each rank; writing to it wakes that rank
  // Sockets that close with the peer's process. Rank 0 has one per rank, in rank order (its own
  // entry is empty); any other rank has one, to rank 0.
  std::vector<Fd> links;
  // A pidfd of each rank's process; empty if not all are available.
  std::vector<Fd> processes;
};

// Connects with the other ranks through an abstract unix socket of rank 0, whose random name is
// exchanged in one round of `keys`. The memory is a memfd, which has no name. Descriptors are sent
// only to processes of the same user that prove that they know group.secret. A group of one rank
// connects with nobody.
// Errors:
//   - Unimplemented: not all ranks can map the memory; the same on all ranks.
//   - Others: those of Backend::Connect and KeyExchange::AllGather.
absl::StatusOr<SegmentSetup> SetUpSegment(const GroupInfo& group, KeyExchange& keys,
                                          const WaitBounds& bounds);

}  // namespace hvd::collectives::shm::segment

#endif  // COLLECTIVES_SHM_SEGMENT_SEGMENT_SETUP_H_
