// RAII file descriptors, pipes, and single reads and writes.
#ifndef BASE_FD_H_
#define BASE_FD_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd {

// Owns one file descriptor, or none. Not thread-safe.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  // Closes the owned descriptor and takes `fd` instead.
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

// Makes a pipe whose ends are close-on-exec.
// Errors:
//   - ResourceExhausted: too many open files.
absl::StatusOr<Pipe> MakePipe();

// Sets O_NONBLOCK: reads and writes fail with EAGAIN instead of blocking, in every process that
// shares the open file.
absl::Status SetNonBlocking(int fd);

// Whether `fd` is a pipe or a socket.
bool IsPipe(int fd);

// The result of one attempt to read or write.
struct IoResult {
  size_t bytes = 0;
  bool would_block = false;  // try again later
  bool end = false;          // end of stream, or the peer is gone
  bool silent = false;       // the end, because the network does not reach the peer any more
};

// Reads once, again if a signal interrupts it. Errors count as the end of the stream.
IoResult ReadSome(int fd, char* buffer, size_t size);

// Writes once. REQUIRES: the calling thread blocks SIGPIPE, or the process ignores it.
IoResult WriteSome(int fd, absl::string_view data);

// Writes everything to a blocking descriptor. REQUIRES: as WriteSome.
// Errors:
//   - Unavailable: the reader is gone.
absl::Status WriteAll(int fd, absl::string_view data);

}  // namespace hvd

#endif  // BASE_FD_H_
