#include "worker_runtime/api/tuning_log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::worker_runtime::api {

absl::StatusOr<std::unique_ptr<TuningLog>> TuningLog::Open(const std::string& path, bool append) {
  // A later world of the job continues the file.
  const int how = append ? O_APPEND : O_TRUNC;
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666));
  if (!fd.valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable HOROVOD_AUTOTUNE_LOG='", path,
                     "': must be a file that can be written: ", strerror(errno)));
  }
  std::unique_ptr<TuningLog> log(new TuningLog(std::move(fd)));
  if (!append) log->WriteLine(std::string(negotiation::tuning::kTuningLogHeader));
  return log;
}

void TuningLog::Add(const negotiation::tuning::TuningSample& sample, bool cache_enabled) {
  WriteLine(negotiation::tuning::TuningLogLine(sample, cache_enabled));
}

void TuningLog::WriteLine(const std::string& line) {
  const std::string text = line + "\n";
  // A full disk costs lines of this log, not the training.
  [[maybe_unused]] const ssize_t written = write(fd_.get(), text.data(), text.size());
}

}  // namespace hvd::worker_runtime::api
