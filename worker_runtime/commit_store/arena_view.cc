#include "worker_runtime/commit_store/arena_view.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>

#include "base/crc32c.h"
#include "worker_runtime/commit_store/arena_layout.h"

namespace hvd::worker_runtime::commit_store {

ArenaView::ArenaView(Fd memory, absl::string_view job)
    : memory_(std::move(memory)), job_(Crc32c(job)) {}

ArenaView::~ArenaView() {
  Release();
  if (header_ != nullptr) munmap(header_, kArenaHeaderBytes);
}

// The file is empty until its owner has opened it, and reading a mapping beyond the end of a file
// raises SIGBUS. So the size is checked first.
bool ArenaView::MapHeader() {
  if (header_ != nullptr) return true;
  struct stat info = {};
  if (fstat(memory_.get(), &info) != 0 || info.st_size != static_cast<off_t>(kArenaBytes)) {
    return false;
  }
  void* const page =
      mmap(nullptr, kArenaHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (page == MAP_FAILED) return false;
  header_ = static_cast<ArenaHeader*>(page);
  return true;
}

std::optional<ArenaView::Commit> ArenaView::Newest() {
  if (!MapHeader()) return std::nullopt;
  const ArenaHeader& header = *header_;
  if (header.magic != kArenaMagic || header.version != kArenaVersion || header.job != job_) {
    return std::nullopt;
  }
  std::optional<Commit> newest;
  for (int i = 0; i < kArenaSlots; ++i) {
    const ArenaSlot& slot = header.slots[i];
    if (slot.mark != kSealed) continue;
    const uint64_t sequence = slot.sequence;
    const Commit commit{slot.number, sequence, slot.checksum, slot.size, i};
    // Checked again: the owner may have begun to replace the commit while its fields were read, or
    // even have sealed the next one, which has another sequence.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.mark != kSealed || slot.sequence != sequence) continue;
    if (commit.size > kArenaSlotStride / 2) continue;
    if (!newest.has_value() || commit.sequence > newest->sequence) newest = commit;
  }
  return newest;
}

absl::StatusOr<absl::string_view> ArenaView::Read(const Commit& commit) {
  Release();
  if (!MapHeader()) return absl::AbortedError("there is no commit any more");
  const ArenaSlot& slot = header_->slots[commit.slot];
  // The mark comes first, then the check: an owner that chooses its slot after the mark avoids this
  // one. An owner that chose it before is seen by the check, or else by the checksum.
  header_->reading = static_cast<uint32_t>(commit.slot) + 1;
  if (slot.mark != kSealed || slot.sequence != commit.sequence) {
    Release();
    return absl::AbortedError("the commit has been replaced");
  }
  if (commit.size == 0) return absl::string_view();
  void* const memory =
      mmap(nullptr, commit.size, PROT_READ, MAP_SHARED, memory_.get(), OffsetOfSlot(commit.slot));
  if (memory == MAP_FAILED) {
    Release();
    return absl::ErrnoToStatus(errno, "a commit can't be read");
  }
  contents_ = memory;
  mapped_ = commit.size;
  return absl::string_view(static_cast<const char*>(memory), commit.size);
}

void ArenaView::Release() {
  if (header_ != nullptr) header_->reading = 0;
  if (contents_ != nullptr) munmap(contents_, mapped_);
  contents_ = nullptr;
}

}  // namespace hvd::worker_runtime::commit_store
