// A timeline's file, which rank 0 writes.
#ifndef WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_
#define WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "worker_runtime/timeline/trace_format.h"

namespace hvd {

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
  ~TraceFile();

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
  static constexpr size_t kMostWaitingBytes = 64 << 20;

  struct Part {
    int rank = 0;
    std::string chunk;
  };

  TraceFile(Fd fd, std::string path, std::vector<std::string> hosts, absl::Time origin);
  void Run();
  std::string FormatParts(const std::deque<Part>& parts);
  // What is to be said at the end about ranks whose events are not all there.
  std::string Notes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  Fd fd_;               // the writer thread's
  TraceFormat format_;  // the writer thread's
  absl::Mutex mutex_;
  std::deque<Part> parts_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> dropped_chunks_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::vector<bool> finished_ ABSL_GUARDED_BY(mutex_);            // by rank
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The file of a world: `path` for the first, then with the epoch before the extension,
// "a.epoch3.json", because rank 0, who writes it, may have moved to where the former file is.
std::string TracePathOf(const std::string& path, uint64_t epoch);

}  // namespace hvd

#endif  // WORKER_RUNTIME_TIMELINE_TRACE_FILE_H_
