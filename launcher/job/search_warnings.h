// A rate limiter for warnings about failures of host discovery. Pure.
#ifndef LAUNCHER_JOB_SEARCH_WARNINGS_H_
#define LAUNCHER_JOB_SEARCH_WARNINGS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hvd::launcher::job {

// The status code of a failure is its kind (see HostScript). A kind is reported at its first
// occurrence, and again when its message changes, at most once every kPause. After kCalm without a
// failure the recovery is reported once, and all kinds count as new. So a script that fails
// occasionally does not produce a warning each time. Not thread-safe.
class SearchWarnings {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(30);
  static constexpr absl::Duration kCalm = absl::Minutes(1);

  // Takes the status of a result (see HostsFound). Returns a line for the user, or "".
  std::string Check(const absl::Status& status, absl::Time now);

  bool ever_succeeded() const { return ever_succeeded_; }

 private:
  struct Told {
    std::string text;
    absl::Time when;
  };

  std::string CheckSuccess(absl::Time now);

  bool ever_succeeded_ = false;
  absl::Time well_since_ = absl::InfiniteFuture();
  std::map<absl::StatusCode, Told> told_;
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_SEARCH_WARNINGS_H_
