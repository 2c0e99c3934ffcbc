// Fuzz target: the header of another process's commit arena.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/crc32c.h"
#include "tests/support/fuzzing.h"
#include "worker_runtime/commit_store/arena_layout.h"
#include "worker_runtime/commit_store/arena_view.h"
#include "worker_runtime/commit_store/commit_arena.h"

namespace hvd::worker_runtime::commit_store {
namespace {

constexpr char kJob[] = "job";
// Of commits whose contents are read: all of them would be up to half a terabyte of zeros.
constexpr size_t kMostBytes = 1 << 16;

// The memory of a process that has written `bytes` into the header; with a `valid` beginning.
Fd Memory(absl::string_view bytes, bool valid) {
  Fd memory(memfd_create("arena", MFD_CLOEXEC));
  char header[kArenaHeaderBytes] = {};
  std::memcpy(header, bytes.data(), std::min(bytes.size(), sizeof(header)));
  if (valid) {
    auto& as_header = reinterpret_cast<ArenaHeader&>(header);
    as_header.magic = kArenaMagic;
    as_header.version = kArenaVersion;
    as_header.job = Crc32c(kJob);
    for (ArenaSlot& slot : as_header.slots) slot.mark = slot.mark % 2;
  }
  Require(ftruncate(memory.get(), kArenaBytes) == 0, "a file can be sparse");
  Require(pwrite(memory.get(), header, sizeof(header), 0) == sizeof(header), "it can be written");
  return memory;
}

void CheckView(Fd memory) {
  ArenaView view(std::move(memory), kJob);
  const auto newest = view.Newest();
  if (!newest.has_value()) return;
  Require(newest->size <= kArenaSlotStride / 2, "a commit is within its slot");
  const auto contents = view.Read(*newest);
  if (!contents.ok()) return;
  Require(contents->size() == newest->size, "a commit has its size");
  if (newest->size <= kMostBytes) Crc32c(*contents);
}

// Makes no commit: the memory of an arena stays mapped.
void CheckArena(Fd memory) {
  const auto arena = CommitArena::Open(std::move(memory), kJob);
  if (!arena.ok()) return RequireOneLine(arena.status());
  (*arena)->newest_number();
}

}  // namespace
}  // namespace hvd::worker_runtime::commit_store

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hvd::worker_runtime::commit_store;
  hvd::InputParts parts(data, size);
  const bool valid = parts.Byte() % 4 != 0;
  hvd::Fd memory = Memory(parts.Rest(), valid);
  hvd::Fd again(dup(memory.get()));
  CheckView(std::move(memory));
  CheckArena(std::move(again));
  return 0;
}
