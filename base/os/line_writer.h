// An asynchronous writer of lines to a file, pipe or terminal, which may be slow, full or hanging.
#ifndef BASE_OS_LINE_WRITER_H_
#define BASE_OS_LINE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/fd.h"

namespace hvd::os {

// A thread writes whole lines in order, so that Write never blocks. Lines that exceed the buffer or
// can't be written are dropped; a line with their number is written in their place as soon as
// writing succeeds again. Thread-safe.
class LineWriter {
 public:
  // The size of the buffer of waiting lines.
  static constexpr size_t kMostWaitingBytes = 4 << 20;
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Returns a whole line that reports `count` missing lines.
  using DroppedLine = std::function<std::string(uint64_t count)>;

  // `file` must be a blocking descriptor.
  LineWriter(Fd file, DroppedLine dropped_line);
  // Waits up to kPatience for the remaining lines. No callback is called after it returns.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Sets the callback for a write error. It is called once, with errno, on the writer's thread, and
  // must not block. Null: no callback.
  void OnError(std::function<void(int error)> callback);

  // `line` ends with '\n'.
  void Write(std::string line);
  // Waits up to kPatience until every line so far has been written or dropped, so that errors have
  // been reported. After a Flush that timed out the destructor does not wait again.
  void Flush();

 private:
  class Worker;

  const std::shared_ptr<Worker> worker_;  // shared with the thread
  std::thread thread_;
};

}  // namespace hvd::os

#endif  // BASE_OS_LINE_WRITER_H_
