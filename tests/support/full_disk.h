// A simulated full disk, for tests.
#ifndef TESTS_SUPPORT_FULL_DISK_H_
#define TESTS_SUPPORT_FULL_DISK_H_

#include <sys/resource.h>

#include <csignal>

namespace hvd {

// While this object lives no file of this process grows beyond `bytes`: writes fail with EFBIG.
// Pipes are not affected.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes = 0) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit little = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &little);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_ = {};
};

}  // namespace hvd

#endif  // TESTS_SUPPORT_FULL_DISK_H_
