// A faulty clock and disk, for programs that are started with it as LD_PRELOAD: the wall clock is
// ahead, and fdatasync hangs, according to the current contents of the file FAULTY_SYSTEM. These
// are two numbers of 64 bits: seconds, and whether it hangs.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

struct Faults {
  int64_t seconds_ahead;
  int64_t sync_hangs;
};

const volatile Faults* Now() {
  static const Faults none = {};
  static const volatile Faults* const faults = [] {
    const char* const path = getenv("FAULTY_SYSTEM");
    const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return &none;
    void* const mapped = mmap(nullptr, sizeof(Faults), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return mapped == MAP_FAILED ? &none : static_cast<const Faults*>(mapped);
  }();
  return faults;
}

}  // namespace

#define STANDS_IN extern "C" __attribute__((visibility("default")))

STANDS_IN int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += Now()->seconds_ahead;
  return result;
}

STANDS_IN int gettimeofday(timeval* time, void*) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

STANDS_IN time_t time(time_t* result) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

STANDS_IN int fdatasync(int fd) {
  while (Now()->sync_hangs != 0) poll(nullptr, 0, 10);
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
