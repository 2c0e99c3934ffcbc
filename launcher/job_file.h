// How `horovodrun status` and `horovodrun drain` find the jobs that run on this machine: a file for
// each, with what it takes to speak to its daemon.
#ifndef LAUNCHER_JOB_FILE_H_
#define LAUNCHER_JOB_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "base/fd.h"
#include "proto/job_file.pb.h"

namespace hvd {

// The user's own: in XDG_RUNTIME_DIR, or else in /tmp.
std::string JobFileDirectory(const Environment& environment);

// Owns the file, which is locked and readable by its user only; the destructor removes it. Not
// thread-safe.
class JobFile {
 public:
  // Makes the directory too.   FailedPrecondition: others could get at it.   Internal: it can't be
  // written. Both say where and why.
  static absl::StatusOr<std::unique_ptr<JobFile>> Write(const std::string& directory,
                                                        const pb::JobFile& job);
  ~JobFile();
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

 private:
  JobFile(std::string path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const Fd file_;  // its lock says that the job lives
};

// The jobs of this user that run, by their ids. Files that a killed horovodrun has left are
// removed.   FailedPrecondition: as above.
absl::StatusOr<std::vector<pb::JobFile>> RunningJobs(const std::string& directory);

}  // namespace hvd

#endif  // LAUNCHER_JOB_FILE_H_
