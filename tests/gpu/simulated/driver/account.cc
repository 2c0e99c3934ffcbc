#include "tests/gpu/simulated/driver/account.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace simulated_gpu {
namespace {

constexpr int kEntries = 512;
constexpr off_t kTableLock = kEntries;  // the byte of the file whose lock is for the whole table

// Locks of a process, which a forked child does not inherit.
bool SetLock(int file, off_t byte, short type, bool wait) {  // NOLINT(runtime/int)
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  int result;
  do {
    result = fcntl(file, wait ? F_SETLKW : F_SETLK, &lock);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

struct Account::Entry {
  size_t bytes;
};

// RAII: this thread alone, of all processes, uses the table.
class Account::Lock {
 public:
  explicit Lock(Account& account) : threads_(account.mutex_), file_(account.file_) {
    if (file_ >= 0) SetLock(file_, kTableLock, F_WRLCK, /*wait=*/true);
  }
  ~Lock() {
    if (file_ >= 0) SetLock(file_, kTableLock, F_UNLCK, /*wait=*/false);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  const std::lock_guard<std::mutex> threads_;
  const int file_;
};

Account::Account(const std::string& file, size_t total) : total_(total) {
  constexpr size_t kBytes = kEntries * sizeof(Entry);
  if (!file.empty()) {
    file_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0 || ftruncate(file_, kBytes) != 0) {
      std::perror(("the simulated GPU's account " + file).c_str());
      std::abort();
    }
  }
  void* const table = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                           file_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file_, 0);
  if (table == MAP_FAILED) std::abort();
  entries_ = static_cast<Entry*>(table);
  const Lock lock(*this);
  FindOwnEntry();
}

void Account::FindOwnEntry() {
  for (own_ = 0; own_ < kEntries; ++own_) {
    if (file_ < 0 || SetLock(file_, own_, F_WRLCK, /*wait=*/false)) break;
  }
  if (own_ == kEntries) std::abort();
  entries_[own_].bytes = 0;
}

bool Account::IsHeld(int entry) const {
  if (entry == own_) return true;
  if (file_ < 0) return false;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = entry;
  lock.l_len = 1;
  return fcntl(file_, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

size_t Account::Held() const {
  size_t held = 0;
  for (int entry = 0; entry < kEntries; ++entry) {
    if (entries_[entry].bytes != 0 && IsHeld(entry)) held += entries_[entry].bytes;
  }
  return held;
}

bool Account::Take(size_t bytes) {
  const Lock lock(*this);
  const size_t held = Held();
  if (held > total_ || bytes > total_ - held) return false;
  entries_[own_].bytes += bytes;
  return true;
}

void Account::GiveBack(size_t bytes) {
  const Lock lock(*this);
  entries_[own_].bytes -= bytes;
}

size_t Account::Free() {
  const Lock lock(*this);
  const size_t held = Held();
  return held > total_ ? 0 : total_ - held;
}

}  // namespace simulated_gpu
