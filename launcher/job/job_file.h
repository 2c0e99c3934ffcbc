// The file by which `horovodrun status` and `horovodrun drain` find the jobs on this machine. Each
// horovodrun holds a nameless file (memfd) with the address and the credentials of its daemon,
// readable by its user only. The file disappears with the process, however that ends.
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

// The realm of jobs; jobs of other realms are not found. Tests use their own.
inline constexpr char kJobRealm[] = "horovod-job";

// Owns the file. Not thread-safe.
class JobFile {
 public:
  // Errors:
  //   - Internal: it can't be written; says why.
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
