// The CSV log file of the autotuner's samples.
#ifndef WORKER_RUNTIME_API_TUNING_LOG_H_
#define WORKER_RUNTIME_API_TUNING_LOG_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "worker_runtime/negotiation/tuning/tuner.h"

namespace hvd::worker_runtime::api {

// Contains kTuningLogHeader, then a line for each sample. Write errors are ignored. Not
// thread-safe.
class TuningLog {
 public:
  // Creates the file or truncates it; with `append` continues the file of an earlier world.
  // Errors:
  //   - InvalidArgument: the file can't be written; the message names it and the reason.
  static absl::StatusOr<std::unique_ptr<TuningLog>> Open(const std::string& path, bool append);

  void Add(const negotiation::tuning::TuningSample& sample, bool cache_enabled);

 private:
  explicit TuningLog(Fd fd) : fd_(std::move(fd)) {}
  void WriteLine(const std::string& line);

  Fd fd_;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TUNING_LOG_H_
