// A timeline's file, which rank 0 writes.
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

// Thread-safe. Writes on a thread of its own, whole events at a time, so that the file can be read
// although the process is killed. What the disk is too slow for is dropped, counted, and said in
// the file.
class TraceFile {
 public:
  // Makes the file, or empties it. `hosts` and `origin`: see TraceFormat.
  //   InvalidArgument: it can't be written; names it and says why.
  static absl::StatusOr<std::unique_ptr<TraceFile>> Open(const std::string& path,
                                                         std::vector<std::string> hosts,
                                                         absl::Time origin);
  // Closes it, and waits for at most kPatience: a disk or a reader that hangs keeps nobody here.
  ~TraceFile();

  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // What a rank has recorded; `last`: nothing more will come from it. With the last of all ranks
  // the file is closed. Does not block.
  void Add(int rank, std::string chunk, bool last);

  // Nothing more will come: the rest is written, and then the file is closed. Does not block.
  // Idempotent.
  void Close();

  // Waits until it is closed.   DeadlineExceeded: it is not.   ResourceExhausted: not everything
  // could be written; says why.
  absl::Status AwaitClosed(absl::Duration timeout);

 private:
  class Writer;
  explicit TraceFile(std::shared_ptr<Writer> writer);

  const std::shared_ptr<Writer> writer_;  // its thread has it as well
  std::thread thread_;
};

// The file of a world: `path` for the first, then with the epoch before the extension,
// "a.epoch3.json", because rank 0, who writes it, may have moved to where the former file is.
std::string TracePathOf(const std::string& path, uint64_t epoch);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_
