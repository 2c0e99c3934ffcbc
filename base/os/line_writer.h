// A writer of lines to a file, pipe or terminal that may be slow, full or hanging.
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

// Thread-safe. The writer's thread writes whole lines in order, so that the callers of Write never
// wait. Lines for which there is no room, or that can't be written, are dropped; a line with their
// number takes their place as soon as something can be written again.
class LineWriter {
 public:
  // The size of the waiting lines; more are dropped.
  static constexpr size_t kMostWaitingBytes = 4 << 20;
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Returns a whole line that reports `count` missing lines.
  using DroppedLine = std::function<std::string(uint64_t count)>;

  // `file` must be a blocking descriptor.
  LineWriter(Fd file, DroppedLine dropped_line);
  // Waits for the lines that are still to be written, at most for kPatience. No callback comes
  // after it returns.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // The callback is called once, with errno, when a line can't be written. It is called on the
  // writer's thread and must not block. Null: no callback.
  void OnError(std::function<void(int error)> callback);

  // `line` ends with '\n'.
  void Write(std::string line);
  // Waits until every line so far is written or dropped, for kPatience at most, so that the errors
  // have been reported. After a Flush that ran into kPatience the destructor does not wait again.
  void Flush();

 private:
  class Worker;

  const std::shared_ptr<Worker> worker_;  // shared with the thread
  std::thread thread_;
};

}  // namespace hvd::os

#endif  // BASE_OS_LINE_WRITER_H_
