// How `horovodrun status` and `horovodrun drain` find the jobs that run on this machine: each
// horovodrun holds a nameless file, with what it takes to speak to its daemon, that only its user
// can read. It goes with the process, however that ends.
#ifndef LAUNCHER_JOB_JOB_FILE_H_
#define LAUNCHER_JOB_JOB_FILE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "proto/job_file.pb.h"

namespace hvd::launcher::job {

// Jobs of another realm are not seen; tests have their own.
inline constexpr char kJobRealm[] = "horovod-job";

// Owns the file. Not thread-safe.
class JobFile {
 public:
  // Internal: it can't be written; says why.
  static absl::StatusOr<std::unique_ptr<JobFile>> Write(const std::string& realm,
                                                        const pb::JobFile& job);
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

 private:
  explicit JobFile(Fd file) : file_(std::move(file)) {}

  const Fd file_;
};

// The jobs of this user that run, by their ids.
std::vector<pb::JobFile> RunningJobs(const std::string& realm);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_FILE_H_
