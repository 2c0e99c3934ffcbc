// The trace file of a timeline, which rank 0 writes.
#ifndef WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_
#define WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hvd::worker_runtime::timeline {

// Thread-safe. Writes on a separate thread, whole events at a time, so that the file can be read
// even if the process is killed. If the disk is too slow, events are dropped; the file says how
// many chunks.
class TraceFile {
 public:
  using OnLost = std::function<void(const absl::Status& why)>;

  // Creates or truncates the file. `hosts` and `origin`: see TraceFormat. `on_lost` is called once,
  // on the writer's thread, if writing fails; it may be called after this object has been
  // destroyed. Errors:
  //   - InvalidArgument: the file can't be written; the message names it and the reason.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Open(const std::string& path,
                                                         std::vector<std::string> hosts,
                                                         absl::Time origin,
                                                         OnLost on_lost = nullptr);
  // Closes the file. Waits for kPatience at most, in case the disk, or the reader of a pipe, hangs.
  ~TraceFile();

  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Adds events of a rank; `last`: its last ones. When the last events of all ranks are written,
  // the file is closed. Does not block.
  void Add(int rank, std::string chunk, bool last);

  // Writes the remaining events, then closes the file; later events are dropped. Does not block.
  // Idempotent.
  void Close();

  // Waits until the file is closed.
  // Errors:
  //   - DeadlineExceeded: the file is not closed in time.
  //   - ResourceExhausted: not everything could be written; the message has the reason.
  absl::Status AwaitClosed(absl::Duration timeout);

 private:
  class Writer;
  explicit TraceFile(std::shared_ptr<Writer> writer);

  const std::shared_ptr<Writer> writer_;  // shared with the thread, which may outlive this object
  std::thread thread_;
};

// Returns the path of a world's file: `path` for the first world, later with the epoch before the
// extension, e.g. "a.epoch3.json". A later world must not overwrite an earlier file, which may be
// on the same host.
std::string TracePathOf(const std::string& path, uint64_t epoch);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_
