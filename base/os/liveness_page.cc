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

// Not FUTEX_PRIVATE: the waiter and the holder are in different processes. May return spuriously;
// callers check the word again.
void FutexWait(Word& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, nullptr, nullptr, 0);
}

void FutexWake(Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

// What the page contains, at its beginning.
struct Content {
  Word lock;
  Word busy;  // 0 or 1
};

bool WasTaken(uint32_t value) { return (value & (FUTEX_TID_MASK | FUTEX_OWNER_DIED)) != 0; }

}  // namespace

// A lock by the kernel's robust futex protocol (Documentation/locking/robust-futex-ABI.rst). The
// word contains the holder's thread id, FUTEX_WAITERS if somebody waits, and FUTEX_OWNER_DIED once
// the kernel has seen the holder end:
//
//   0 --Take--> thread id --the holder ends--> FUTEX_OWNER_DIED
//
// When a thread ends, the kernel walks the thread's robust list, sets FUTEX_OWNER_DIED in each word
// that has the thread's id, and wakes a waiter if FUTEX_WAITERS is set. It does so before it frees
// the process's memory. A pthread mutex would do the same, but a wait for it can't be cancelled.
class LivenessPage::Lock {
 public:
  explicit Lock(void* page)
      : page_(page),
        word_(static_cast<Content*>(page)->lock),
        busy_(static_cast<Content*>(page)->busy) {}
  ~Lock() { munmap(page_, kPageBytes); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool taken() const { return WasTaken(word_); }

  bool busy() const { return busy_ != 0; }
  void SetBusy(bool busy) {
    if (getpid() == holder_) busy_ = busy ? 1 : 0;
  }
  void set_holder(pid_t holder) { holder_ = holder; }

  // Takes the lock for the calling thread and never returns; returns only if the lock was taken
  // before.
  void Hold() {
    // The list's entry is on this thread's stack, not in the page, because the other process can
    // write to the page. `futex_offset` leads from the entry to the word.
    robust_list entry;
    robust_list_head list;
    list.list.next = &entry;
    entry.next = &list.list;
    list.futex_offset = reinterpret_cast<char*>(&word_) - reinterpret_cast<char*>(&entry);
    list.list_op_pending = nullptr;
    // Replaces the list that libc has registered: this thread takes no other robust mutex. It is
    // registered before the lock is taken, so that there is no moment in which the thread could die
    // with the lock unnoticed; the kernel skips a word without the thread's id.
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
      // FUTEX_WAITERS is set before cancelled_ is read, while Cancel sets cancelled_ before it
      // clears FUTEX_WAITERS (all operations are sequentially consistent). If Cancel's clearing
      // comes first, cancelled_ is read as true here. If it comes later, the word differs from
      // `value`, and FutexWait returns at once or is woken. So no wake-up is lost.
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
  Word& busy_;
  std::atomic<pid_t> holder_{0};  // the process that has called HoldForever
  std::atomic<bool> cancelled_{false};
};

absl::StatusOr<LivenessPage> LivenessPage::Create() {
  Fd fd(memfd_create("hvd-liveness", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Sealed, so that the other process can't shrink the file: access to the mapping would then raise
  // SIGBUS in this process.
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
    // The thread's reference keeps the page mapped.
    std::thread([lock = lock_] { lock->Hold(); }).detach();
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // Also returns if the lock was taken by the other process in the meantime: the word is then
  // taken, too.
  if (!status.ok()) return status;
  lock_->AwaitTaken();
  lock_->set_holder(getpid());
  return status;
}

void LivenessPage::SetBusy(bool busy) { lock_->SetBusy(busy); }

bool LivenessPage::busy() const { return lock_->busy(); }

LivenessPage::End LivenessPage::AwaitDeath() { return lock_->AwaitDeath(); }

void LivenessPage::Cancel() { lock_->Cancel(); }

}  // namespace hvd::os
