#include "worker_runtime/commit_store/commit_arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "worker_runtime/commit_store/arena_layout.h"
#include "worker_runtime/commit_store/arena_memory.h"

namespace hvd::worker_runtime::commit_store {
namespace {

absl::Status NoMemory(size_t bytes, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for a commit of ", bytes, " bytes: ", strerror(error)));
}

// Gives the file its full size. It is sparse: parts that were never written take no memory.
absl::Status GiveSize(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "no memory for commits");
  if (info.st_size == static_cast<off_t>(kArenaBytes)) return absl::OkStatus();
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur < kArenaBytes) {  // ftruncate would raise SIGXFSZ
    return absl::ResourceExhaustedError("no memory for commits: files are limited (ulimit -f)");
  }
  if (ftruncate(fd, static_cast<off_t>(kArenaBytes)) != 0) {
    return absl::ErrnoToStatus(errno, "no memory for commits");
  }
  return absl::OkStatus();
}

// Locks the file for this process. A POSIX record lock belongs to the process, not to the open
// file, which the agent shares, and ends with the process.
bool Lock(int fd) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return fcntl(fd, F_SETLK, &whole) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommitArena>> CommitArena::Open(Fd memory, absl::string_view job) {
  if (!Lock(memory.get())) {
    return absl::FailedPreconditionError("another process keeps this worker's commits");
  }
  RETURN_IF_ERROR(GiveSize(memory.get()));
  std::unique_ptr<CommitArena> arena(new CommitArena(std::move(memory)));
  RETURN_IF_ERROR(arena->MapHeader(job));
  return arena;
}

absl::Status CommitArena::MapHeader(absl::string_view job) {
  void* const page =
      mmap(nullptr, kArenaHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (page == MAP_FAILED || !TakePages(memory_.get(), 0, page, kArenaHeaderBytes)) {
    return absl::ErrnoToStatus(errno, "no memory for commits");
  }
  header_ = static_cast<ArenaHeader*>(page);
  if (header_->magic == kArenaMagic && header_->version == kArenaVersion &&
      header_->job == Crc32c(job)) {
    return absl::OkStatus();
  }
  // The magic number is written last, so that a process that dies here leaves an arena that the
  // next one initialises again.
  for (ArenaSlot& slot : header_->slots) slot.mark = kUnsealed;
  header_->version = kArenaVersion;
  header_->job = Crc32c(job);
  header_->magic = kArenaMagic;
  return absl::OkStatus();
}

// The slots stay mapped, because their contents may still be in use.
CommitArena::~CommitArena() {
  if (header_ != nullptr) munmap(header_, kArenaHeaderBytes);
}

absl::StatusOr<char*> CommitArena::Map(int slot, size_t bytes, bool for_writing) {
  std::vector<Mapping>& mappings = mappings_[slot];
  if (mappings.empty() || mappings.back().bytes < bytes) {
    if (bytes > kArenaSlotStride / 2) return NoMemory(bytes, ENOMEM);
    // A growing commit is mapped with a reserve, because old mappings stay and would pile up.
    const size_t size = RoundUp(mappings.empty() ? bytes : bytes + bytes / 2, kHugePageBytes);
    char* const memory = MapHugePages(memory_.get(), OffsetOfSlot(slot), size);
    if (memory == nullptr) return NoMemory(bytes, errno);
    madvise(memory, size, MADV_HUGEPAGE);
    madvise(memory, size, MADV_DONTDUMP);
    mappings.push_back({memory, size, false});
  }
  Mapping& mapping = mappings.back();
  if (for_writing && !mapping.taken) {
    mapping.taken = TakeHugePages(memory_.get(), OffsetOfSlot(slot), mapping.memory, mapping.bytes);
    if (!mapping.taken) return NoMemory(bytes, errno);
  }
  return mapping.memory;
}

int CommitArena::NewestSealed() const {
  int newest = -1;
  for (int slot = 0; slot < kSlots; ++slot) {
    const ArenaSlot& header = header_->slots[slot];
    if (header.mark != kSealed) continue;
    if (newest < 0 || header.sequence > header_->slots[newest].sequence) newest = slot;
  }
  return newest;
}

bool CommitArena::IsIn(int slot, const void* place) const {
  return std::any_of(mappings_[slot].begin(), mappings_[slot].end(), [place](const Mapping& m) {
    return place >= m.memory && place < m.memory + m.bytes;
  });
}

int CommitArena::ChooseSlot(const void* keep) {
  const int newest = NewestSealed();
  const int read_elsewhere = static_cast<int>(header_->reading.load()) - 1;
  int slot = 0;
  // At most three slots are excluded, so one of the four is free.
  while (slot == newest || slot == read_elsewhere || IsIn(slot, keep)) ++slot;
  return slot;
}

absl::StatusOr<const char*> CommitArena::Begin(size_t bytes, const void* keep) {
  absl::MutexLock lock(&mutex_);
  pending_.reset();
  const int slot = ChooseSlot(keep);
  const size_t capacity = RoundUp(bytes, kAlignment);
  ASSIGN_OR_RETURN(const char* const memory, Map(slot, capacity, /*for_writing=*/true));
  // The writes that follow must not become visible before this store: a reader that sees new
  // contents must also see kUnsealed. The store alone orders only what comes before it, so a fence
  // follows. x86 needs no instruction for the fence, and orders even the copy's non-temporal writes
  // after the store, which is a locked instruction there.
  header_->slots[slot].mark = kUnsealed;
  std::atomic_thread_fence(std::memory_order_release);
  RETURN_IF_ERROR(FAILPOINT_STATUS("worker.arena.begun"));
  pending_ = Pending{slot, capacity, 0, 0, false, {}};
  return memory;
}

absl::Status CommitArena::Append(absl::string_view part) {
  ThreadTeam nobody;
  return AppendAll(absl::MakeConstSpan(&part, 1), nobody, /*threads=*/1);
}

absl::Status CommitArena::AppendAll(absl::Span<const absl::string_view> parts, ThreadTeam& team,
                                    int threads) {
  if (parts.empty()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (!pending_.has_value()) return absl::FailedPreconditionError("no commit was begun");
  PartCopies copies(PendingMemory(), pending_->size, pending_->checksum);
  for (const absl::string_view part : parts) copies.Add(part);
  if (copies.end() > pending_->capacity) {
    pending_.reset();
    return absl::InvalidArgumentError("the commit is larger than it was begun with");
  }
  pending_->checksum = copies.Run(team, threads);
  copies.AddTo(pending_->stretches);
  pending_->size = copies.end();
  return absl::OkStatus();
}

char* CommitArena::PendingMemory() const {
  return pending_->compares ? nullptr : mappings_[pending_->slot].back().memory;
}

absl::Status CommitArena::BeginComparison() {
  absl::MutexLock lock(&mutex_);
  pending_.reset();
  const int newest = NewestSealed();
  if (newest < 0) return absl::NotFoundError("there is no commit yet");
  pending_ = Pending{newest, RoundUp(header_->slots[newest].size, kAlignment), 0, 0, true, {}};
  return absl::OkStatus();
}

bool CommitArena::EndComparison() {
  absl::MutexLock lock(&mutex_);
  const std::optional<Pending> compared = std::exchange(pending_, std::nullopt);
  if (!compared.has_value() || !compared->compares) return false;
  const ArenaSlot& slot = header_->slots[compared->slot];
  return compared->size == slot.size && compared->checksum == slot.checksum;
}

absl::Status CommitArena::Seal(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  if (!pending_.has_value() || pending_->compares) {
    return absl::FailedPreconditionError("no commit was begun");
  }
  FAILPOINT("worker.arena.written");
  // The sequence, not the number, orders commits: after a rollback numbers are used again.
  const int newest = NewestSealed();
  ArenaSlot& slot = header_->slots[pending_->slot];
  slot.checksum = pending_->checksum;
  slot.number = number;
  slot.sequence = newest < 0 ? 1 : header_->slots[newest].sequence + 1;
  slot.size = pending_->size;
  FAILPOINT("worker.arena.described");
  // Last: a reader that sees kSealed sees the fields above, and a process that dies before this
  // leaves the previous commit the newest one.
  slot.mark = kSealed;
  FAILPOINT("worker.arena.sealed");
  pending_.reset();
  return absl::OkStatus();
}

absl::Status CommitArena::TakeOver(ArenaView& other) {
  const std::optional<ArenaView::Commit> theirs = other.Newest();
  if (!theirs.has_value() || theirs->number <= newest_number()) {
    return absl::NotFoundError("there is no newer commit");
  }
  ASSIGN_OR_RETURN(const absl::string_view contents, other.Read(*theirs));
  const absl::Status copied = Begin(contents.size()).status();
  absl::Status appended = copied.ok() ? Append(contents) : copied;
  appended.Update(FAILPOINT_STATUS("worker.kept.copied"));
  other.Release();
  RETURN_IF_ERROR(appended);
  // The other arena's owner may have overwritten the slot during the copy; the checksum shows it.
  {
    absl::MutexLock lock(&mutex_);
    const bool is_same = pending_.has_value() && pending_->checksum == theirs->checksum;
    if (!is_same) pending_.reset();
    if (!is_same) return absl::AbortedError("the commit has been replaced meanwhile");
  }
  return Seal(theirs->number);
}

void CommitArena::Clear() {
  absl::MutexLock lock(&mutex_);
  pending_.reset();
  for (int slot = 0; slot < kSlots; ++slot) {
    header_->slots[slot].mark = kUnsealed;
    // The mappings stay, but the hole takes their pages: the next Begin must allocate them again.
    for (Mapping& mapping : mappings_[slot]) mapping.taken = false;
    fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, OffsetOfSlot(slot),
              static_cast<off_t>(kArenaSlotStride));
  }
}

uint64_t CommitArena::newest_number() {
  absl::MutexLock lock(&mutex_);
  const int newest = NewestSealed();
  return newest < 0 ? 0 : header_->slots[newest].number;
}

uint32_t CommitArena::pending_checksum() {
  absl::MutexLock lock(&mutex_);
  return pending_.has_value() ? pending_->checksum : 0;
}

absl::StatusOr<std::vector<uint32_t>> CommitArena::ChecksumsOf(absl::Span<const Piece> pieces) {
  absl::MutexLock lock(&mutex_);
  if (!pending_.has_value()) return absl::FailedPreconditionError("no commit was begun");
  std::vector<uint32_t> checksums;
  auto at = pending_->stretches.begin();
  const auto end = pending_->stretches.end();
  for (const Piece& piece : pieces) {
    at = std::lower_bound(at, end, piece.offset, [](const CopiedStretch& stretch, size_t offset) {
      return stretch.offset < offset;
    });
    uint32_t checksum = 0;
    size_t covered = 0;
    for (; at != end && covered < piece.size && at->offset == piece.offset + covered; ++at) {
      checksum = covered == 0 ? at->checksum : JoinCrc32c(checksum, at->checksum, at->size);
      covered += at->size;
    }
    if (covered != piece.size) {
      return absl::InvalidArgumentError("a piece of a commit does not consist of whole parts");
    }
    checksums.push_back(checksum);
  }
  return checksums;
}

std::optional<CommitArena::Commit> CommitArena::Newest() {
  absl::MutexLock lock(&mutex_);
  // A damaged commit is dropped, and the one before it is tried.
  for (int slot; (slot = NewestSealed()) >= 0; header_->slots[slot].mark = kUnsealed) {
    const ArenaSlot& header = header_->slots[slot];
    const absl::StatusOr<char*> memory = Map(slot, header.size, /*for_writing=*/false);
    if (!memory.ok()) continue;
    const absl::string_view contents(*memory, header.size);
    if (Crc32c(contents) == header.checksum) return Commit{header.number, contents};
  }
  return std::nullopt;
}

}  // namespace hvd::worker_runtime::commit_store
