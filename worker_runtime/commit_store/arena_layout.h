// The memory layout of a commit arena: a header, then slots for commits. Private to this folder.
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
// Commits alternate between two slots. A third and a fourth are used only while the older of the
// two is still being read, by the worker itself or by the agent.
constexpr int kArenaSlots = 4;
// The file is sparse, so slots can be far apart and none has to move when a commit grows.
constexpr uint64_t kArenaSlotStride = uint64_t{1} << 40;
constexpr uint64_t kArenaBytes = (kArenaSlots + 1) * kArenaSlotStride;

enum ArenaMark : uint32_t { kUnsealed = 0, kSealed = 1 };

struct ArenaSlot {
  std::atomic<uint32_t> mark;
  uint32_t checksum;
  uint64_t number;
  uint64_t sequence;  // counts seals; unlike `number` it is never repeated after a rollback
  uint64_t size;
};

struct ArenaHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t job;  // the checksum of the job's id
  ArenaSlot slots[kArenaSlots];
  std::atomic<uint32_t> reading;  // 1 + the slot that another process is reading; 0: none
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(sizeof(ArenaHeader) <= kArenaHeaderBytes);

inline off_t OffsetOfSlot(int slot) { return static_cast<off_t>((slot + 1) * kArenaSlotStride); }

}  // namespace hvd::worker_runtime::commit_store

#endif  // WORKER_RUNTIME_COMMIT_STORE_ARENA_LAYOUT_H_
