#include "base/console/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hvd::console {
namespace {

constexpr size_t kUsualColumns = 80;
constexpr absl::string_view kEraseBelow = "\x1b[J";  // from the cursor to the end of the screen
constexpr absl::string_view kUp = "\x1b[A";

size_t Columns(int fd) {
  winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

// In the background the terminal's bottom line belongs to the shell or another program.
bool InBackground(int fd) {
  const pid_t foreground = tcgetpgrp(fd);
  return foreground > 0 && foreground != getpgrp();
}

// Cuts `text` to the width, one column for each byte: all but printable ASCII becomes '?'. The last
// column stays free, because the cursor would wrap after it.
std::string Fit(absl::string_view text, size_t columns) {
  std::string line(text.substr(0, columns - 1));
  for (char& c : line) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  return line;
}

}  // namespace

bool CanHaveTerminalLine(int fd, const Environment& environment) {
  const auto term = environment.find("TERM");
  return isatty(fd) != 0 && term != environment.end() && !term->second.empty() &&
         term->second != "dumb";
}

std::string TerminalLine::Draw(absl::string_view text) {
  if (InBackground(fd_)) return Erase();
  const std::string line = Fit(text, Columns(fd_));
  if (line == drawn_) return "";
  if (line.empty()) return Erase();
  // A worker's progress bar, which ended with '\r', stays visible in the line above.
  const absl::string_view start = drawn_.empty() && mid_line_ ? "\n" : "\r";
  drawn_ = line;
  return absl::StrCat(start, line, kEraseBelow, "\r");
}

std::string TerminalLine::Erase() {
  if (drawn_.empty()) return "";
  drawn_.clear();
  // The line was drawn before Ctrl-Z and bg. The cursor is now in the shell's line, which must
  // stay.
  if (InBackground(fd_)) return "";
  return absl::StrCat("\r", kEraseBelow, mid_line_ ? kUp : "");
}

void TerminalLine::Passed(absl::string_view data) {
  if (!data.empty()) mid_line_ = data.back() != '\n';
}

}  // namespace hvd::console
