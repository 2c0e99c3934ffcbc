// The discovery of running jobs on this machine, for `horovodrun status` and `horovodrun drain`.
// Each horovodrun holds an anonymous file (memfd) with the address and the credentials of its
// daemon, readable by its user only. The file exists exactly as long as the process.
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

// The default realm, a namespace of jobs: a search finds jobs of its realm only. Tests use separate
// realms.
inline constexpr char kJobRealm[] = "horovod-job";

// Owns the file. Not thread-safe.
class JobFile {
 public:
  // Errors:
  //   - Internal: the file can't be written; says why.
  static absl::StatusOr<std::unique_ptr<JobFile>> Write(const std::string& realm,
                                                        const pb::JobFile& job);
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

 private:
  explicit JobFile(Fd file) : file_(std::move(file)) {}

  const Fd file_;
};

// The running jobs of this user, in the order of their ids.
std::vector<pb::JobFile> RunningJobs(const std::string& realm);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_FILE_H_
