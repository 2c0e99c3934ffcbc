// The trace file of a timeline, written by rank 0.
#ifndef WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_
#define WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hvd::worker_runtime::timeline {

// Thread-safe. Writes on a separate thread, whole events at a time, so that the file can be read
// although the process is killed. Events that the disk is too slow for are dropped and counted; the
// file has the count.
class TraceFile {
 public:
  // Makes the file, or empties it. `hosts` and `origin`: see TraceFormat.
  // Errors:
  //   - InvalidArgument: it can't be written; names it and says why.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Open(const std::string& path,
                                                         std::vector<std::string> hosts,
                                                         absl::Time origin);
  // Closes it, and waits for at most kPatience: a disk or a reader that hangs does not block it
  // longer.
  ~TraceFile();

  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Adds a rank's events; `last`: nothing more will come from it. The last parts of all ranks close
  // the file. Does not block.
  void Add(int rank, std::string chunk, bool last);

  // Nothing more will come: writes the rest, then closes the file. Does not block. Idempotent.
  void Close();

  // Waits until it is closed.
  // Errors:
  //   - DeadlineExceeded: it is not closed in time.
  //   - ResourceExhausted: not everything could be written; says why.
  absl::Status AwaitClosed(absl::Duration timeout);

 private:
  class Writer;
  explicit TraceFile(std::shared_ptr<Writer> writer);

  const std::shared_ptr<Writer> writer_;  // its thread has it as well
  std::thread thread_;
};

// The file of a world: `path` for the first, later with the epoch before the extension,
// "a.epoch3.json", because rank 0, the writer, may have moved to the host of the former file.
std::string TracePathOf(const std::string& path, uint64_t epoch);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_
