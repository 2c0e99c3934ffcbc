#include "collectives/shm/segment/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status_macros.h"

namespace hvd::collectives::shm::segment {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRingBytes = size_t{4} << 20;  // the size of one rank's ring
constexpr size_t kLargestChunk = size_t{64} << 10;
constexpr size_t kSmallestChunk = size_t{8} << 10;
constexpr size_t kFewestSlots = 4;

size_t RoundUp(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

// The offsets of the segment's parts, which are contiguous and aligned to pages.
struct Layout {
  explicit Layout(int ranks) {
    const size_t count = ranks;
    states = RoundUp(sizeof(SegmentHeader), kPage);
    small = states + RoundUp(count * sizeof(RankState), kPage);
    pipes = small + RoundUp(count * kSmallSlots * sizeof(SmallSlot), kPage);
    rings = pipes + RoundUp(kPipeKinds * count * count * sizeof(BytePipe), kPage);
  }
  size_t states, small, pipes, rings;
};

size_t CallersOffset(int ranks, const RingGeometry& geometry) {
  return RoundUp(Layout(ranks).rings + geometry.slots * geometry.chunk_bytes * ranks * ranks,
                 kPage);
}

size_t TotalBytes(int ranks, const RingGeometry& geometry) {
  return CallersOffset(ranks, geometry) + ranks * kCallersBytes;
}

}  // namespace

RingGeometry GeometryFor(int ranks) {
  // 8 slots of equal size if the bounds allow it, so that ranks can be some blocks apart.
  const size_t even = RoundUp(kRingBytes / 8 / ranks, kPage);
  const size_t chunk = std::clamp(even, kSmallestChunk, kLargestChunk);
  return {chunk, std::max(kFewestSlots, kRingBytes / (chunk * ranks))};
}

absl::StatusOr<Segment> Segment::Create(int ranks, const RingGeometry& geometry) {
  Fd fd(memfd_create("horovod-collectives", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "no memory to share");
  const size_t bytes = TotalBytes(ranks, geometry);
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur < bytes) {  // ftruncate would raise SIGXFSZ
    return absl::ResourceExhaustedError("no memory to share: files are limited (ulimit -f)");
  }
  // The size is sealed: otherwise a peer could shrink the file, and accesses of other ranks would
  // raise SIGBUS.
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "no memory to share");
  }
  return MapAll(std::move(fd), ranks, geometry);
}

absl::StatusOr<Segment> Segment::Map(Fd fd, int ranks, const RingGeometry& geometry) {
  struct stat info = {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  // What arrives is rank 0's memory only if its size and its seal say so: a size that differs
  // (another geometry) or can shrink would end in SIGBUS.
  if (fstat(fd.get(), &info) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      info.st_size != static_cast<off_t>(TotalBytes(ranks, geometry))) {
    return absl::InvalidArgumentError("this is not the group's shared memory");
  }
  return MapAll(std::move(fd), ranks, geometry);
}

absl::StatusOr<Segment> Segment::MapAll(Fd fd, int ranks, const RingGeometry& geometry) {
  // MAP_NORESERVE: most of the rings of a large group are never touched, and must not count against
  // the limit on committed memory.
  void* const memory = mmap(nullptr, TotalBytes(ranks, geometry), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "shared memory can't be mapped");
  return Segment(std::move(fd), static_cast<char*>(memory), ranks, geometry);
}

Segment::Segment(Fd fd, char* memory, int ranks, const RingGeometry& geometry)
    : fd_(std::move(fd)),
      memory_(memory),
      ranks_(ranks),
      geometry_(geometry),
      rings_(Layout(ranks).rings) {}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      memory_(std::exchange(other.memory_, nullptr)),
      ranks_(other.ranks_),
      geometry_(other.geometry_),
      rings_(other.rings_) {}

Segment::~Segment() {
  if (memory_ != nullptr) munmap(memory_, TotalBytes(ranks_, geometry_));
}

RankState& Segment::state(int rank) const {
  return reinterpret_cast<RankState*>(memory_ + Layout(ranks_).states)[rank];
}

SmallSlot& Segment::small(int rank, uint64_t sequence) const {
  return reinterpret_cast<SmallSlot*>(
      memory_ + Layout(ranks_).small)[rank * kSmallSlots + sequence % kSmallSlots];
}

char* Segment::callers() const { return memory_ + CallersOffset(ranks_, geometry_); }

BytePipe& Segment::pipe(PipeKind kind, int from, int to) const {
  const size_t index = (static_cast<size_t>(kind) * ranks_ + from) * ranks_ + to;
  return reinterpret_cast<BytePipe*>(memory_ + Layout(ranks_).pipes)[index];
}

}  // namespace hvd::collectives::shm::segment
