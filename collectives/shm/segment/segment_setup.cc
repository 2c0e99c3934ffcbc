#include "collectives/shm/segment/segment_setup.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "base/status_macros.h"
#include "collectives/shm/segment/segment_setup_sides.h"

namespace hvd::collectives::shm::segment {

absl::StatusOr<SegmentSetup> SetUpSegment(const GroupInfo& group, KeyExchange& keys,
                                          const WaitBounds& bounds) {
  Fd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.valid()) return absl::ErrnoToStatus(errno, "no eventfd");
  if (group.size == 1) {
    ASSIGN_OR_RETURN(Segment segment, Segment::Create(1, GeometryFor(1)));
    std::vector<Fd> bells;
    bells.push_back(std::move(bell));
    return SegmentSetup{std::move(segment), std::move(bells), {}, {}};
  }
  const auto side = group.rank == 0 ? &SetUpAsHost : &SetUpAsGuest;
  return side(group, keys, std::move(bell), bounds);
}

}  // namespace hvd::collectives::shm::segment
