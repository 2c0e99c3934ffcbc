#include "worker_runtime/api/tuning_log.h"

#include <errno.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/os/protected_open.h"

namespace hvd::worker_runtime::api {

absl::StatusOr<std::unique_ptr<TuningLog>> TuningLog::Open(
    const std::string& path, bool append, std::function<void(const std::string&)> warn) {
  // A later world of the job continues the file.
  absl::StatusOr<Fd> fd =
      os::OpenOutputFile(path, append ? os::OldContent::kKept : os::OldContent::kDropped, 0666);
  if (!fd.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("HOROVOD_AUTOTUNE_LOG='", path,
                                                   "' can't be written: ", fd.status().message(),
                                                   "; the samples of autotune are not recorded"));
  }
  std::unique_ptr<TuningLog> log(new TuningLog(path, *std::move(fd), std::move(warn)));
  if (!append) log->WriteLine(std::string(negotiation::tuning::kTuningLogHeader));
  return log;
}

void TuningLog::Add(const negotiation::tuning::TuningSample& sample, bool cache_enabled) {
  WriteLine(negotiation::tuning::TuningLogLine(sample, cache_enabled));
}

void TuningLog::WriteLine(const std::string& line) {
  const std::string text = line + "\n";
  const ssize_t written = write(fd_.get(), text.data(), text.size());
  // A full disk costs lines of this log, not the training.
  if (written == static_cast<ssize_t>(text.size()) || warn_ == nullptr) return;
  const std::string why = written < 0 ? std::strerror(errno) : "a line was cut off";
  std::exchange(warn_, nullptr)(absl::StrCat("can't write HOROVOD_AUTOTUNE_LOG='", path_,
                                             "': ", why, "; lines are missing there"));
}

}  // namespace hvd::worker_runtime::api
