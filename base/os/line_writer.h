// Lines for a file, pipe or terminal that may be slow or full, or may hang.
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

// Thread-safe. A thread of its own writes them, whole and in order, so that whoever has something
// to say never waits. Lines for which there is no room, or that can't be written, are dropped;
// how many, is said in their place as soon as something can be written again.
class LineWriter {
 public:
  // Of lines that wait; more are dropped.
  static constexpr size_t kMostWaitingBytes = 4 << 20;
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // A whole line that says that so many are missing.
  using DroppedLine = std::function<std::string(uint64_t count)>;

  // `file` blocks when it is full.
  LineWriter(Fd file, DroppedLine dropped_line);
  // Waits for what is to be written, for kPatience at most. No callback comes after it returns.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Called once, with errno, when a line can't be written; from its thread; must not block. Null:
  // nobody is.
  void OnError(std::function<void(int error)> callback);

  // `line` ends with '\n'.
  void Write(std::string line);
  // Waits until every line so far is written or dropped, for kPatience at most; so that what could
  // not be written has been said. After one that has waited in vain, the destructor waits no more.
  void Flush();

 private:
  class Worker;

  const std::shared_ptr<Worker> worker_;  // its thread has it as well
  std::thread thread_;
};

}  // namespace hvd::os

#endif  // BASE_OS_LINE_WRITER_H_
