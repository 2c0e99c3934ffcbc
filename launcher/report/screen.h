// Drawing a text over the previous one on a terminal.
#ifndef LAUNCHER_REPORT_SCREEN_H_
#define LAUNCHER_REPORT_SCREEN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::launcher::report {

struct ScreenSize {
  size_t rows = 24;
  size_t columns = 80;
};

// The size of the terminal `fd`; of a usual one if it can't be found out.
ScreenSize SizeOfScreen(int fd);

// What draws `text` from the first row on, and erases all else: as many lines as fit, each cut to
// the width, one column for each byte; all but printable ASCII becomes '?'. Pure.
std::string Redraw(absl::string_view text, const ScreenSize& size);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_SCREEN_H_
