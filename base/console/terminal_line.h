// A status line at the bottom of a terminal, below all other output.
#ifndef BASE_CONSOLE_TERMINAL_LINE_H_
#define BASE_CONSOLE_TERMINAL_LINE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/env.h"

namespace hvd::console {

// Whether `fd` is a terminal that understands the escape sequences of TerminalLine.
bool CanHaveTerminalLine(int fd, const Environment& environment);

// Returns the text to write and writes nothing itself. Not thread-safe.
//
// While the line is drawn, the cursor is in its first column. So the terminal's echo (^C) is erased
// with the line, and the whole line is erased even if the terminal has become narrower.
class TerminalLine {
 public:
  // Queries `fd` at each call for its width and for whether this process is in the foreground. A
  // descriptor that is not a terminal counts as 80 columns wide. `fd` must outlive this object.
  explicit TerminalLine(int fd) : fd_(fd) {}

  // Shows as much of `text` as fits; empty: removes the line. Returns "" if nothing changes.
  std::string Draw(absl::string_view text);

  // The text that erases the line, to be written before other output; "" if there is no line.
  std::string Erase();

  // To be called after other output, `data`, was written to the terminal. REQUIRES: the line is
  // erased.
  void Passed(absl::string_view data);

 private:
  const int fd_;
  std::string drawn_;      // the text shown; empty: no line
  bool mid_line_ = false;  // other output ended without a newline; the cursor is in its line
};

}  // namespace hvd::console

#endif  // BASE_CONSOLE_TERMINAL_LINE_H_
