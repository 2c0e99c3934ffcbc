#include "base/os/liveness_page.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>  // NOLINT: one thread that parks
#include <utility>

#include "base/status_macros.h"

namespace hvd::os {
namespace {

constexpr size_t kPageBytes = 4096;

using Word = std::atomic<uint32_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(uint32_t));

// Not FUTEX_PRIVATE: the other side is another process. Spurious returns are the callers' affair.
void FutexWait(Word& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, nullptr, nullptr, 0);
}

void FutexWake(Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

bool WasTaken(uint32_t value) { return (value & (FUTEX_TID_MASK | FUTEX_OWNER_DIED)) != 0; }

}  // namespace

// The word follows the kernel's robust futex protocol: the holder's thread id, FUTEX_WAITERS if
// somebody waits, FUTEX_OWNER_DIED once the kernel has seen the holder end. It is not a pthread
// mutex since a wait for one of these can't be cancelled.
class LivenessPage::Lock {
 public:
  explicit Lock(void* page) : page_(page), word_(*static_cast<Word*>(page)) {}
  ~Lock() { munmap(page_, kPageBytes); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool taken() const { return WasTaken(word_); }

  // On the thread that is to hold it. Returns only if it was taken before.
  void Hold() {
    // In this thread's own memory, since the contents of the page are not trusted.
    robust_list entry;
    robust_list_head list;
    list.list.next = &entry;
    entry.next = &list.list;
    list.futex_offset = reinterpret_cast<char*>(&word_) - reinterpret_cast<char*>(&entry);
    list.list_op_pending = nullptr;
    // In place of libc's own list: this thread takes no other robust mutex.
    void* libc_list = nullptr;
    size_t libc_bytes = 0;
    syscall(SYS_get_robust_list, 0, &libc_list, &libc_bytes);
    syscall(SYS_set_robust_list, &list, sizeof(list));
    const auto self = static_cast<uint32_t>(syscall(SYS_gettid));
    if (Take(self)) {
      FutexWake(word_);
      while (true) pause();
    }
    syscall(SYS_set_robust_list, libc_list, libc_bytes);
  }

  void AwaitTaken() {
    for (uint32_t value; !WasTaken(value = word_);) FutexWait(word_, value);
  }

  End AwaitDeath() {
    while (true) {
      // Set before the look at cancelled_, and cleared by Cancel, so that no wake-up is lost.
      const uint32_t value = word_.fetch_or(FUTEX_WAITERS) | FUTEX_WAITERS;
      if ((value & FUTEX_OWNER_DIED) != 0) return End::kDied;
      if (cancelled_) return WasTaken(value) ? End::kCancelled : End::kNeverHeld;
      FutexWait(word_, value);
    }
  }

  void Cancel() {
    cancelled_ = true;
    word_.fetch_and(~uint32_t{FUTEX_WAITERS});
    FutexWake(word_);
  }

 private:
  bool Take(uint32_t thread_id) {
    uint32_t value = word_;
    while (!WasTaken(value)) {
      if (word_.compare_exchange_weak(value, (value & FUTEX_WAITERS) | thread_id)) return true;
    }
    return false;
  }

  void* const page_;
  Word& word_;
  std::atomic<bool> cancelled_{false};
};

absl::StatusOr<LivenessPage> LivenessPage::Create() {
  Fd fd(memfd_create("hvd-liveness", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Sealed, so that the other process can't remove the memory under this one.
  if (!fd.valid() || ftruncate(fd.get(), kPageBytes) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "can't make a liveness page");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Lock> lock, MapLock(fd.get()));
  return LivenessPage(std::move(lock), std::move(fd));
}

absl::StatusOr<LivenessPage> LivenessPage::Map(Fd fd) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  struct stat info = {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd.get(), &info) != 0 ||
      info.st_size != static_cast<off_t>(kPageBytes)) {
    return absl::InvalidArgumentError("the descriptor is not that of a liveness page");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Lock> lock, MapLock(fd.get()));
  return LivenessPage(std::move(lock), Fd());
}

absl::StatusOr<std::shared_ptr<LivenessPage::Lock>> LivenessPage::MapLock(int fd) {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return absl::ErrnoToStatus(errno, "can't map a liveness page");
  return std::make_shared<Lock>(page);
}

absl::Status LivenessPage::HoldForever() {
  if (lock_->taken()) {
    return absl::FailedPreconditionError("the liveness page was taken before");
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  absl::Status status;
  try {
    // Its copy of the lock keeps the page mapped.
    std::thread([lock = lock_] { lock->Hold(); }).detach();
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (status.ok()) lock_->AwaitTaken();
  return status;
}

LivenessPage::End LivenessPage::AwaitDeath() { return lock_->AwaitDeath(); }

void LivenessPage::Cancel() { lock_->Cancel(); }

}  // namespace hvd::os
