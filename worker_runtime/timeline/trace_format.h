// The formatter that converts chunks of events to the trace format of Perfetto and
// chrome://tracing.
#ifndef WORKER_RUNTIME_TIMELINE_TRACE_FORMAT_H_
#define WORKER_RUNTIME_TIMELINE_TRACE_FORMAT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::worker_runtime::timeline {

// Makes a JSON array of trace events, piece by piece. A rank is shown as a process, and a process
// set as two of its threads, one for waiting and one for running. Times are microseconds since
// `origin`. Viewers can read the array without its end. Not thread-safe.
class TraceFormat {
 public:
  // `hosts` has the host of each rank.
  TraceFormat(const std::vector<std::string>& hosts, absl::Time origin)
      : hosts_(hosts), origin_(origin), heard_(hosts.size(), false) {}

  // Returns the beginning of the array, which names the ranks.
  std::string Begin();
  // Returns the events of a chunk that `rank` has recorded.
  // Errors:
  //   - InvalidArgument: there is no such rank, or the bytes are not a valid chunk.
  absl::StatusOr<std::string> Add(int rank, absl::string_view chunk);
  // Returns an event of this name and count, about the events of `rank`, at the time of the newest
  // event so far.
  std::string Note(int rank, absl::string_view name, uint64_t count);
  // Returns the end of the array.
  std::string End() const { return "\n]\n"; }

 private:
  class Writer;

  const std::vector<std::string> hosts_;
  const absl::Time origin_;
  std::vector<bool> heard_;                // by rank: whether it has sent events
  std::set<std::pair<int, int>> threads_;  // rank and process set of the threads named so far
  int64_t last_ns_ = 0;                    // the newest begin of the events so far
};

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_TRACE_FORMAT_H_
