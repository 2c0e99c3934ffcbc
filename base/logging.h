// The factory of loggers. A line on stderr is "2026-11-21 12:00:00.000 horovod[1] warning: text",
// with microseconds if level debug is enabled.
#ifndef BASE_LOGGING_H_
#define BASE_LOGGING_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "spdlog/logger.h"

namespace hvd {

// Returns a thread-safe logger that owns its sink. `level`: trace, debug, info, warning, error or
// fatal.
std::shared_ptr<spdlog::logger> MakeLogger(const std::string& name, absl::string_view level,
                                           bool hide_time);

}  // namespace hvd

#endif  // BASE_LOGGING_H_
