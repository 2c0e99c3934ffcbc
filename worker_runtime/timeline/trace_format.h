// The trace format of Perfetto and chrome://tracing, made from chunks of events.
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

// Makes a JSON array of trace events, piece by piece: a rank is a process, a process set two of its
// threads, one for waiting and one for running. Times are microseconds since `origin`. Each prefix
// can be read without the rest. Not thread-safe.
class TraceFormat {
 public:
  // `hosts`: of each rank.
  TraceFormat(const std::vector<std::string>& hosts, absl::Time origin)
      : hosts_(hosts), origin_(origin), heard_(hosts.size(), false) {}

  // The beginning of the array: the ranks.
  std::string Begin();
  // The events of `rank`.
  // Errors:
  //   - InvalidArgument: no such rank, or not a chunk.
  absl::StatusOr<std::string> Add(int rank, absl::string_view chunk);
  // An event about the events of `rank` so far, at the time of the last chunk.
  std::string Note(int rank, absl::string_view name, uint64_t count);
  // The end of the array.
  std::string End() const { return "\n]\n"; }

 private:
  class Writer;

  const std::vector<std::string> hosts_;
  const absl::Time origin_;
  std::vector<bool> heard_;                // by rank
  std::set<std::pair<int, int>> threads_;  // rank and process set, those that have a name
  int64_t last_ns_ = 0;                    // of the events so far
};

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_TRACE_FORMAT_H_
