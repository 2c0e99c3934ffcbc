// A line at the bottom of a terminal that stays below all else that is written there.
#ifndef BASE_CONSOLE_TERMINAL_LINE_H_
#define BASE_CONSOLE_TERMINAL_LINE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "base/env.h"

namespace hvd::console {

// Whether `fd` is a terminal that understands what TerminalLine says.
bool CanHaveTerminalLine(int fd, const Environment& environment);

// Tells what to write and writes nothing itself. Not thread-safe.
//
// While it is drawn the cursor stands in its first column: so what the terminal echoes (^C) goes
// with it when it is erased, and so does all of it if the terminal became narrower meanwhile.
class TerminalLine {
 public:
  // Asks `fd`, which must outlive it, how wide it is and whether we are in the foreground, each
  // time. What is no terminal counts as one of 80 columns.
  explicit TerminalLine(int fd) : fd_(fd) {}

  // Makes it say `text`, as much of it as there is room for; empty: makes it vanish. Returns "" if
  // it does so already.
  std::string Draw(absl::string_view text);

  // To be written before anything else is; "" if there is nothing to erase.
  std::string Erase();

  // `data` has been written to the terminal, while the line was not drawn.
  void Passed(absl::string_view data);

 private:
  const int fd_;
  std::string drawn_;      // what it says; empty: nothing
  bool mid_line_ = false;  // others left the cursor in a line that is to be overwritten
};

}  // namespace hvd::console

#endif  // BASE_CONSOLE_TERMINAL_LINE_H_
