#include "launcher/report/screen.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hvd::launcher::report {
namespace {

constexpr absl::string_view kHome = "\x1b[H";
constexpr absl::string_view kEraseLine = "\x1b[K";   // from the cursor to the end of the line
constexpr absl::string_view kEraseBelow = "\x1b[J";  // from the cursor to the end of the screen

}  // namespace

ScreenSize SizeOfScreen(int fd) {
  ScreenSize size;
  winsize found;
  if (ioctl(fd, TIOCGWINSZ, &found) != 0) return size;
  if (found.ws_row > 0) size.rows = found.ws_row;
  if (found.ws_col > 0) size.columns = found.ws_col;
  return size;
}

std::string Redraw(absl::string_view text, const ScreenSize& size) {
  std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  // The last row stays free for the cursor, and the last column because the cursor would wrap.
  lines.resize(std::min(lines.size(), size.rows - 1));
  std::string drawn(kHome);
  for (std::string& line : lines) {
    line.resize(std::min(line.size(), size.columns - 1));
    for (char& c : line) {
      if (!absl::ascii_isprint(c)) c = '?';
    }
    absl::StrAppend(&drawn, line, kEraseLine, "\r\n");
  }
  // Erased last, and only what is left: a screen that is emptied first flickers.
  return absl::StrCat(drawn, kEraseBelow);
}

}  // namespace hvd::launcher::report
