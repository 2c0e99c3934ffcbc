// The shared-memory segment of the ranks of one host, and its layout.
#ifndef COLLECTIVES_SHM_SEGMENT_SEGMENT_H_
#define COLLECTIVES_SHM_SEGMENT_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::collectives::shm::segment {

// The CPU fetches two neighbouring cache lines together, so data written by different ranks lies
// further apart.
inline constexpr size_t kApart = 128;

// The rank that broke the group: 0 (none), or 1 + the rank. The first one stays.
struct alignas(kApart) SegmentHeader {
  std::atomic<uint32_t> broken_by;
};

// The state that one rank publishes. Counters only grow; each is written by its rank alone.
struct RankState {
  alignas(kApart) std::atomic<uint32_t> asleep;       // its bell must be rung
  std::atomic<uint32_t> left;                         // cleanly; it will write nothing more
  std::atomic<uint32_t> mail_closed;                  // the same, for its mail
  alignas(kApart) std::atomic<uint64_t> contributed;  // blocks, see block_ring.h
  alignas(kApart) std::atomic<uint64_t> reduced;
  alignas(kApart) std::atomic<uint64_t> drained;
  alignas(kApart) std::atomic<uint64_t> probe;  // see core_distance.h
};

// A rank's small contributions to all others. The smallest lie beside the sequence number that
// publishes them.
inline constexpr size_t kNearBytes = 56;
inline constexpr size_t kSmallBytes = 16 << 10;
struct alignas(kApart) SmallSlot {
  std::atomic<uint64_t> sequence;
  char near_data[kNearBytes];
  alignas(64) char far_data[kSmallBytes];

  char* Data(size_t bytes) { return bytes <= kNearBytes ? near_data : far_data; }
};
// Slots take turns: a rank that publishes its n-th contribution has seen the (n-1)-th of all
// others, which have thus finished with the (n-2)-th.
inline constexpr int kSmallSlots = 2;

// A stream of bytes from one rank to another.
inline constexpr size_t kPipeBytes = 32 << 10;
struct alignas(kApart) BytePipe {
  alignas(kApart) std::atomic<uint64_t> written;
  alignas(kApart) std::atomic<uint64_t> read;
  alignas(kApart) char data[kPipeBytes];
};
enum class PipeKind { kData = 0, kMail = 1 };
inline constexpr int kPipeKinds = 2;

static_assert(std::atomic<uint64_t>::is_always_lock_free, "they are shared between processes");

// The rings of blocks: each rank has `slots` blocks of one chunk for every rank.
struct RingGeometry {
  size_t chunk_bytes = 0;  // a multiple of kApart
  size_t slots = 0;
};
// The rings are larger than a core's cache: a slot that is written again is then no longer in the
// readers' caches, which would make writing slow.
RingGeometry GeometryFor(int ranks);

// One process's mapping of the segment. As thread-safe as its contents. The memory is zeroed, and
// allocated as it is touched.
class Segment {
 public:
  // Errors:
  //   - ResourceExhausted, other codes of errno: no memory or descriptor.
  static absl::StatusOr<Segment> Create(int ranks, const RingGeometry& geometry);
  // Maps the segment of a descriptor that Create has made.
  // Errors:
  //   - InvalidArgument: it is not such a descriptor.
  static absl::StatusOr<Segment> Map(Fd fd, int ranks, const RingGeometry& geometry);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) = delete;
  ~Segment();

  int fd() const { return fd_.get(); }  // borrowed
  const RingGeometry& geometry() const { return geometry_; }

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory_); }
  RankState& state(int rank) const;
  SmallSlot& small(int rank, uint64_t sequence) const;
  BytePipe& pipe(PipeKind kind, int from, int to) const;
  // The part of block number `block` that `rank` writes for `owner`.
  char* chunk(int rank, uint64_t block, int owner) const {
    const size_t slot = block % geometry_.slots;
    return memory_ + rings_ +
           ((rank * geometry_.slots + slot) * ranks_ + owner) * geometry_.chunk_bytes;
  }

 private:
  Segment(Fd fd, char* memory, int ranks, const RingGeometry& geometry);
  static absl::StatusOr<Segment> MapAll(Fd fd, int ranks, const RingGeometry& geometry);

  Fd fd_;
  char* memory_;
  int ranks_;
  RingGeometry geometry_;
  size_t rings_;  // where they begin
};

}  // namespace hvd::collectives::shm::segment

#endif  // COLLECTIVES_SHM_SEGMENT_SEGMENT_H_
