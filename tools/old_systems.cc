// Functions of newer C and C++ libraries, for systems whose own lack them.
//
// The wheel's programs and libraries are built on Debian 12 and carry its shared libraries; both
// call functions that came with glibc 2.29 to 2.34 and GCC 9 to 12. This library defines those, so
// that the wheel runs with glibc 2.28 and GCC 8's libstdc++. It is the last library that each of
// the wheel's files needs: a function that the system defines is taken from the system.
//
// Built by tools/wheel.py as libhvd_old_systems.so, together with the objects of std::filesystem
// from the static libstdc++. It exports what is between the lines `extern "C"`, and
// std::filesystem. The functions of the standard library have C linkage here, under the names that
// the compiler gives them, because a program can't define them in C++.
//
// Thread-safety: that of the functions that are replaced.

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <iterator>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

namespace {

// Constructors of the program's global objects. Until glibc 2.33 each program brought the code that
// runs them and passed it to __libc_start_main; a program that is linked with a newer glibc has
// none, and the C library does it.
void RunConstructors(int argc, char** argv, char** environment) {
  using Constructor = void (*)(int, char**, char**);
  struct Found {
    ElfW(Addr) base = 0;
    const ElfW(Dyn) * dynamic = nullptr;
  } found;
  dl_iterate_phdr(
      [](dl_phdr_info* program, size_t, void* result) {
        for (int i = 0; i < program->dlpi_phnum; ++i) {
          if (program->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
          *static_cast<Found*>(result) = {program->dlpi_addr,
                                          reinterpret_cast<const ElfW(Dyn)*>(
                                              program->dlpi_addr + program->dlpi_phdr[i].p_vaddr)};
        }
        return 1;  // The program is the first; no library is wanted.
      },
      &found);
  Constructor first = nullptr;
  Constructor* others = nullptr;
  size_t count = 0;
  for (const ElfW(Dyn)* entry = found.dynamic; entry && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_INIT)
      first = reinterpret_cast<Constructor>(found.base + entry->d_un.d_ptr);
    if (entry->d_tag == DT_INIT_ARRAY)
      others = reinterpret_cast<Constructor*>(found.base + entry->d_un.d_ptr);
    if (entry->d_tag == DT_INIT_ARRAYSZ) count = entry->d_un.d_val / sizeof(Constructor);
  }
  if (first) first(argc, argv, environment);
  for (size_t i = 0; others && i < count; ++i) others[i](argc, argv, environment);
}

// glibc 2.34 and later run the constructors themselves if the program passes nothing that does.
bool RunsConstructors() {
  return dlvsym(RTLD_DEFAULT, "__libc_start_main", "GLIBC_2.34") != nullptr;
}

constexpr long kNanoseconds = 1'000'000'000;

timespec Add(timespec time, timespec duration) {
  time.tv_sec += duration.tv_sec;
  time.tv_nsec += duration.tv_nsec;
  if (time.tv_nsec >= kNanoseconds) {
    time.tv_nsec -= kNanoseconds;
    ++time.tv_sec;
  }
  return time;
}

// Zero if `end` is past.
timespec Remaining(clockid_t clock, const timespec& end) {
  timespec now;
  clock_gettime(clock, &now);
  timespec left = {end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
  if (left.tv_nsec < 0) {
    left.tv_nsec += kNanoseconds;
    --left.tv_sec;
  }
  return left.tv_sec < 0 ? timespec{0, 0} : left;
}

// The condition variable measures the time of day, `end` is of another clock. Someone may set the
// time of day meanwhile, so a wait takes at most a second of it; then it returns 0, as after a
// spurious wakeup, and the caller checks its condition and waits again.
int WaitInSteps(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                const timespec* end) {
  timespec left = Remaining(clock, *end);
  const bool is_last = left.tv_sec == 0;
  if (!is_last) left = {1, 0};
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const timespec until = Add(now, left);
  const int result = pthread_cond_timedwait(condition, mutex, &until);
  return result == ETIMEDOUT && !is_last ? 0 : result;
}

}  // namespace

extern "C" {

// ---- glibc ----

// False: always right, and costs an atomic operation where a plain one would do.
__attribute__((visibility("default"))) char __libc_single_threaded = 0;

pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// Before glibc 2.33, stat() and its kin were inline functions around calls with a version of the
// structure. The kernel's structure is that of glibc on 64-bit systems.
int fstatat(int folder, const char* path, struct stat* result, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, result, flags));
}
int stat(const char* path, struct stat* result) noexcept {
  return fstatat(AT_FDCWD, path, result, 0);
}
int lstat(const char* path, struct stat* result) noexcept {
  return fstatat(AT_FDCWD, path, result, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat* result) noexcept {
  return static_cast<int>(syscall(SYS_fstat, file, result));
}
int fstat64(int file, struct stat64* result) noexcept {
  return static_cast<int>(syscall(SYS_fstat, file, result));
}

const char* sigabbrev_np(int signal) noexcept {
  static constexpr const char* kNames[] = {
      nullptr, "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
      "SEGV",  "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
      "TTOU",  "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS"};
  return signal >= 0 && signal < static_cast<int>(std::size(kNames)) ? kNames[signal] : nullptr;
}

// glibc has it since 2.30.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* end) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, end);
  return WaitInSteps(condition, mutex, clock, end);
}

// What the wheel's programs call in place of __libc_start_main, which older systems have, too, but
// which does not run the constructors of these programs there (RunConstructors).
int hvd_start_program(int (*main)(int, char**, char**), int argc, char** argv,
                      void (*init)(int, char**, char**), void (*fini)(), void (*end_of_linker)(),
                      void* stack) {
  using Start = decltype(&hvd_start_program);
  const auto system = reinterpret_cast<Start>(dlsym(RTLD_DEFAULT, "__libc_start_main"));
  if (!init && !RunsConstructors()) init = RunConstructors;
  return system(main, argc, argv, init, fini, end_of_linker, stack);
}

// ---- libstdc++ ----

// std::exception_ptr's count of references. The older library has no such functions, but its copy
// constructor and its destructor do the same. In a newer library these call the functions below, so
// they must not be searched before it.
void _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(void* to, const void* from);
void _ZNSt15__exception_ptr13exception_ptrD1Ev(void* pointer);

void _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(const void* pointer) {
  void* copy = nullptr;  // never destroyed: that is the reference
  _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(&copy, pointer);
}
void _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(void* pointer) {
  _ZNSt15__exception_ptr13exception_ptrD1Ev(pointer);
}

// std::runtime_error(std::runtime_error&&)
void _ZNSt13runtime_errorC2EOS_(void* to, const std::runtime_error* from) {
  new (to) std::runtime_error(*from);
}
void _ZNSt13runtime_errorC1EOS_(void* to, const std::runtime_error* from) {
  new (to) std::runtime_error(*from);
}

// std::stringstream() and std::ostringstream()
void _ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev(void* to) {
  new (to) std::stringstream(std::ios::in | std::ios::out);
}
void _ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev(void* to) {
  new (to) std::ostringstream(std::ios::out);
}

// std::string::reserve(): a request to free what is not used, which may be declined.
void _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7reserveEv(std::string*) {}

// std::__throw_bad_array_new_length()
void _ZSt28__throw_bad_array_new_lengthv() { throw std::bad_array_new_length(); }

}  // extern "C"
