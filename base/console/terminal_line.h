// A status line at the bottom of a terminal, below all other output.
#ifndef BASE_CONSOLE_TERMINAL_LINE_H_
#define BASE_CONSOLE_TERMINAL_LINE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/env.h"

namespace hvd::console {

// Whether `fd` is a terminal that understands the escape sequences of TerminalLine.
bool CanHaveTerminalLine(int fd, const Environment& environment);

// Returns what to write and writes nothing itself. Not thread-safe.
//
// While it is drawn the cursor stands in its first column. So the terminal's echo (^C) is erased
// with the line, and all of the line is erased even if the terminal became narrower meanwhile.
class TerminalLine {
 public:
  // Asks `fd` each time how wide it is and whether this process is in the foreground. A descriptor
  // that is not a terminal counts as one of 80 columns. `fd` must outlive this object.
  explicit TerminalLine(int fd) : fd_(fd) {}

  // Shows as much of `text` as fits; empty: removes the line. Returns "" if nothing changes.
  std::string Draw(absl::string_view text);

  // The text that erases the line, to be written before other output; "" if there is no line.
  std::string Erase();

  // `data` has been written to the terminal, while the line was not drawn.
  void Passed(absl::string_view data);

 private:
  const int fd_;
  std::string drawn_;      // the text shown; empty: no line
  bool mid_line_ = false;  // other output ended without a newline; the cursor is in its line
};

}  // namespace hvd::console

#endif  // BASE_CONSOLE_TERMINAL_LINE_H_
