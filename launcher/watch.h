// `horovodrun status --watch`: the status again and again.
#ifndef LAUNCHER_WATCH_H_
#define LAUNCHER_WATCH_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "launcher/cli/control_options.h"

namespace hvd::launcher {

// How long a daemon that has answered before may be silent: it may be started again, or another one
// may take over.
inline constexpr absl::Duration kWatchPatience = absl::Seconds(30);

// Calls `show` with each answer of Control, until the job has ended or `show` returns false. The
// first answer chooses the job. Without --json the last text says that the job has ended.
// REQUIRES: options.watch is set.
// Errors:
//   - those of Control, from its first call;
//   - Unavailable: the daemon has been silent for kWatchPatience.
absl::Status Watch(cli::ControlOptions options, const std::string& job_realm, Clock& clock,
                   const std::function<bool(const std::string& text)>& show);

}  // namespace hvd::launcher

#endif  // LAUNCHER_WATCH_H_
