// The layout of a commit arena's memory: a header, and slots far apart. For this folder only.
#ifndef WORKER_RUNTIME_COMMIT_STORE_ARENA_LAYOUT_H_
#define WORKER_RUNTIME_COMMIT_STORE_ARENA_LAYOUT_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hvd::worker_runtime::commit_store {

constexpr uint64_t kArenaMagic = 0x414e455241445648;  // "HVDARENA"
constexpr uint32_t kArenaVersion = 2;
constexpr size_t kArenaHeaderBytes = 4096;
// Two take turns; the others are used only while the older of them is being read, by its own
// process or by the agent.
constexpr int kArenaSlots = 4;
// The file has holes, so the slots can lie far apart and none has to move when it grows.
constexpr uint64_t kArenaSlotStride = uint64_t{1} << 40;
constexpr uint64_t kArenaBytes = (kArenaSlots + 1) * kArenaSlotStride;

enum ArenaMark : uint32_t { kUnsealed = 0, kSealed = 1 };

struct ArenaSlot {
  std::atomic<uint32_t> mark;
  uint32_t checksum;
  uint64_t number;
  uint64_t sequence;  // counts the seals: numbers may come again, after some were rolled back
  uint64_t size;
};

struct ArenaHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t job;  // checksum of its name
  ArenaSlot slots[kArenaSlots];
  std::atomic<uint32_t> reading;  // a slot that another process reads, counted from 1; 0: none
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(sizeof(ArenaHeader) <= kArenaHeaderBytes);

inline off_t OffsetOfSlot(int slot) { return static_cast<off_t>((slot + 1) * kArenaSlotStride); }

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_ARENA_LAYOUT_H_
