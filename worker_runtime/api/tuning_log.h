// The log file of the tuner's samples.
#ifndef WORKER_RUNTIME_API_TUNING_LOG_H_
#define WORKER_RUNTIME_API_TUNING_LOG_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "worker_runtime/negotiation/tuning/tuner.h"

namespace hvd::worker_runtime::api {

// A CSV file: kTuningLogHeader, then a line for each sample. Best effort after opening. Used by one
// thread.
class TuningLog {
 public:
  // A new file, or with `append` the file of an earlier world, if there is one.
  // Errors:
  //   - InvalidArgument: it can't be written; names it and says why.
  static absl::StatusOr<std::unique_ptr<TuningLog>> Open(const std::string& path, bool append);

  void Add(const negotiation::tuning::TuningSample& sample, bool cache_enabled);

 private:
  explicit TuningLog(Fd fd) : fd_(std::move(fd)) {}
  void WriteLine(const std::string& line);

  Fd fd_;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TUNING_LOG_H_
