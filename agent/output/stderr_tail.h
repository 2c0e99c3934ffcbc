// The last lines of a worker's stderr, for the report of its exit.
#ifndef AGENT_OUTPUT_STDERR_TAIL_H_
#define AGENT_OUTPUT_STDERR_TAIL_H_

#include <deque>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::agent::output {

// Not thread-safe.
class StderrTail {
 public:
  static constexpr size_t kMaxLines = 40;
  static constexpr size_t kMaxLineBytes = 2048;  // longer lines are cut off

  // Takes one line with its line end, as LineSplitter gives it. A line that ends with '\r' only is
  // replaced by the next one, as on a terminal.
  void Append(absl::string_view line);

  // Oldest first, valid UTF-8, without line ends.
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
  bool overwrite_ = false;
};

}  // namespace hvd::agent::output

#endif  // AGENT_OUTPUT_STDERR_TAIL_H_
