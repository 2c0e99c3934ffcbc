// The CSV log file of the autotuner's samples.
#ifndef WORKER_RUNTIME_API_TUNING_LOG_H_
#define WORKER_RUNTIME_API_TUNING_LOG_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "worker_runtime/negotiation/tuning/tuner.h"

namespace hvd::worker_runtime::api {

// Contains kTuningLogHeader, then a line for each sample. Not thread-safe.
class TuningLog {
 public:
  // Creates the file or truncates it; with `append` continues the file of an earlier world. `warn`
  // is called at the first line that can't be written, from the call that writes it.
  // Errors:
  //   - InvalidArgument: the file can't be written; the message names it and the reason.
  static absl::StatusOr<std::unique_ptr<TuningLog>> Open(
      const std::string& path, bool append, std::function<void(const std::string&)> warn);

  void Add(const negotiation::tuning::TuningSample& sample, bool cache_enabled);

 private:
  TuningLog(std::string path, Fd fd, std::function<void(const std::string&)> warn)
      : path_(std::move(path)), fd_(std::move(fd)), warn_(std::move(warn)) {}
  void WriteLine(const std::string& line);

  const std::string path_;
  Fd fd_;
  std::function<void(const std::string&)> warn_;  // null: it was called
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TUNING_LOG_H_
