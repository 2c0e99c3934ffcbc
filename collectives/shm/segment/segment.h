// The memory that the ranks of one host share, and what lies where in it.
#ifndef COLLECTIVES_SHM_SEGMENT_SEGMENT_H_
#define COLLECTIVES_SHM_SEGMENT_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::collectives::shm::segment {

// Two neighbouring cache lines are fetched together, so what different ranks write lies further
// apart.
inline constexpr size_t kApart = 128;

// Who is to blame when the group is broken: 0, or 1 + the rank. The first one stays.
struct alignas(kApart) SegmentHeader {
  std::atomic<uint32_t> broken_by;
};

// What one rank says about itself. Counters only grow; each is written by its rank alone.
struct RankState {
  alignas(kApart) std::atomic<uint32_t> asleep;       // its bell is to be rung
  std::atomic<uint32_t> left;                         // in good order; it will write nothing more
  std::atomic<uint32_t> mail_closed;                  // the same, of its mail
  alignas(kApart) std::atomic<uint64_t> contributed;  // blocks, see block_ring.h
  alignas(kApart) std::atomic<uint64_t> reduced;
  alignas(kApart) std::atomic<uint64_t> drained;
  alignas(kApart) std::atomic<uint64_t> probe;  // see core_distance.h
};

// What one rank shows all others at once: small contributions lie beside the number that says that
// they are there.
inline constexpr size_t kNearBytes = 56;
inline constexpr size_t kSmallBytes = 16 << 10;
struct alignas(kApart) SmallSlot {
  std::atomic<uint64_t> sequence;
  char near_data[kNearBytes];
  alignas(64) char far_data[kSmallBytes];

  char* Data(size_t bytes) { return bytes <= kNearBytes ? near_data : far_data; }
};
// Slots take turns: who shows its n-th contribution has seen the (n-1)-th of all others, who have
// thus finished with the (n-2)-th.
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
// Rings larger than a core's cache: what is written is then no longer in the readers' caches, which
// would make writing slow.
RingGeometry GeometryFor(int ranks);

// One process's view of the segment. Thread-safe as far as what lies in it is. The memory is
// zeroed, and taken from the system as it is touched.
class Segment {
 public:
  // ResourceExhausted, other codes of errno: no memory or descriptor.
  static absl::StatusOr<Segment> Create(int ranks, const RingGeometry& geometry);
  // The one behind a descriptor that came from Create.   InvalidArgument: it is not.
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
  // Of block number `block` what `rank` writes for `owner`.
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
