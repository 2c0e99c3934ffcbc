// The layout and mapping of the shared-memory segment of the ranks of one host.
#ifndef COLLECTIVES_SHM_SEGMENT_SEGMENT_H_
#define COLLECTIVES_SHM_SEGMENT_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::collectives::shm::segment {

// The distance of data that different ranks write. It is two cache lines because CPUs prefetch
// lines in pairs: less would cause false sharing.
inline constexpr size_t kApart = 128;

// The rank that broke the group: 0 (none), or 1 + the rank. Set once.
struct alignas(kApart) SegmentHeader {
  std::atomic<uint32_t> broken_by;
};

// The state that one rank publishes. The counters only grow. Only their rank writes them; `asleep`
// is also cleared by the rank that rings the bell.
struct RankState {
  alignas(kApart) std::atomic<uint32_t> asleep;       // its bell must be rung
  std::atomic<uint32_t> left;                         // it has left cleanly and writes no more
  std::atomic<uint32_t> mail_closed;                  // it writes no more mail
  alignas(kApart) std::atomic<uint64_t> contributed;  // blocks, see block_ring.h
  alignas(kApart) std::atomic<uint64_t> reduced;
  alignas(kApart) std::atomic<uint64_t> drained;
  alignas(kApart) std::atomic<uint64_t> probe;            // see core_distance.h
  alignas(kApart) std::atomic<uint64_t> moves_elsewhere;  // see Communicator
};

// A slot for a rank's small contribution to all others. The smallest contributions share a cache
// line with the sequence number that publishes them.
inline constexpr size_t kNearBytes = 56;
inline constexpr size_t kSmallBytes = 16 << 10;
struct alignas(kApart) SmallSlot {
  std::atomic<uint64_t> sequence;
  char near_data[kNearBytes];
  alignas(64) char far_data[kSmallBytes];

  char* Data(size_t bytes) { return bytes <= kNearBytes ? near_data : far_data; }
};
// Two slots per rank, used alternately, need no reader counts: a rank that publishes its n-th
// contribution has seen the (n-1)-th of all others, which therefore have finished reading the
// (n-2)-th, in the same slot.
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

// The dimensions of the rings: each rank has a ring of `slots` blocks; a block has one chunk for
// each rank of the group.
struct RingGeometry {
  size_t chunk_bytes = 0;  // a multiple of kApart
  size_t slots = 0;
};
// Makes the rings larger than a core's cache: when a slot is written again, the readers' caches no
// longer hold it. Otherwise each write would first have to invalidate the readers' copies of the
// line, which costs more than reading it.
RingGeometry GeometryFor(int ranks);

// One rank's block of the memory that the segment has for the communicator's caller.
inline constexpr size_t kCallersBytes = size_t{10} << 20;

// One process's mapping of the segment. As thread-safe as its contents. The memory is zeroed; pages
// are allocated on first access.
class Segment {
 public:
  // Errors:
  //   - ResourceExhausted, or another code for the errno: no memory or file descriptor.
  static absl::StatusOr<Segment> Create(int ranks, const RingGeometry& geometry);
  // Maps the segment behind a descriptor that another process got from Create.
  // Errors:
  //   - InvalidArgument: `fd` is not such a descriptor, or for another number of ranks.
  //   - ResourceExhausted, or another code for the errno: it can't be mapped.
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
  // The chunk that `rank` writes for `owner` in its block number `block`.
  char* chunk(int rank, uint64_t block, int owner) const {
    const size_t slot = block % geometry_.slots;
    return memory_ + rings_ +
           ((rank * geometry_.slots + slot) * ranks_ + owner) * geometry_.chunk_bytes;
  }
  // The blocks of all ranks, in their order, from a multiple of the page size on.
  char* callers() const;

 private:
  Segment(Fd fd, char* memory, int ranks, const RingGeometry& geometry);
  static absl::StatusOr<Segment> MapAll(Fd fd, int ranks, const RingGeometry& geometry);

  Fd fd_;
  char* memory_;
  int ranks_;
  RingGeometry geometry_;
  size_t rings_;  // the offset of the rings
};

}  // namespace hvd::collectives::shm::segment

#endif  // COLLECTIVES_SHM_SEGMENT_SEGMENT_H_
