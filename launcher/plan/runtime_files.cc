#include "launcher/plan/runtime_files.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/os/protected_open.h"
#include "base/settings/runtime_settings.h"
#include "base/status_macros.h"

namespace hvd::launcher::plan {
namespace {

// Workers of another machine have other folders.
bool AllAreHere(const JobPlan& plan) {
  return !plan.hosts.empty() &&
         std::all_of(plan.hosts.begin(), plan.hosts.end(),
                     [](const PlannedHost& host) { return host.target.local; });
}

// Locks the file, whose descriptor the job keeps. Returns false if another descriptor has the lock:
// two jobs would empty and mix the file. A pipe mixes what they write on purpose, and a file system
// without locks has no such check.
bool TryLock(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return true;
  return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

absl::StatusOr<Fd> Open(const JobPlan& plan, const char* setting, const std::string& path) {
  const std::string place =
      absl::StartsWith(path, "/") ? path : absl::StrCat(plan.working_directory, "/", path);
  absl::StatusOr<Fd> file = os::OpenOutputFile(place, os::OldContent::kKept, 0666);
  if (!file.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(setting, ": can't write ", path, ": ", file.status().message()));
  }
  if (!TryLock(file->get())) {
    return absl::FailedPreconditionError(absl::StrCat(setting, ": another running job writes to ",
                                                      path, "; give each job a file of its own"));
  }
  return file;
}

}  // namespace

absl::StatusOr<std::vector<Fd>> OpenRuntimeFiles(const JobPlan& plan) {
  std::vector<Fd> files;
  if (!AllAreHere(plan)) return files;
  ASSIGN_OR_RETURN(const settings::RuntimeEnv runtime, settings::ParseRuntimeEnv(plan.environment));
  if (!runtime.timeline.empty() && runtime.timeline != settings::kDynamicTimeline) {
    ASSIGN_OR_RETURN(Fd timeline,
                     Open(plan, "--timeline-filename (HOROVOD_TIMELINE)", runtime.timeline));
    files.push_back(std::move(timeline));
  }
  if (runtime.autotune.enabled && !runtime.autotune.log.empty()) {
    if (runtime.autotune.log == runtime.timeline) {
      return absl::InvalidArgumentError(
          absl::StrCat("--timeline-filename and --autotune-log-file both name ", runtime.timeline,
                       "; give each a file of its own"));
    }
    ASSIGN_OR_RETURN(
        Fd log, Open(plan, "--autotune-log-file (HOROVOD_AUTOTUNE_LOG)", runtime.autotune.log));
    files.push_back(std::move(log));
  }
  return files;
}

}  // namespace hvd::launcher::plan
