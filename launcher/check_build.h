// The report of horovodrun --check-build: the features of this build, and why others are missing.
#ifndef LAUNCHER_CHECK_BUILD_H_
#define LAUNCHER_CHECK_BUILD_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace hvd::launcher {

// The packages that a Python interpreter finds.
struct PythonFacts {
  std::string executable;
  std::map<std::string, std::string> versions;  // by module; those that are there
  std::string nccl_version = "";                // empty: none
  std::string keras_backend = "";               // what Keras 3 would use
};

// Asks the `python3` of the PATH, without slow imports.
// Errors:
//   - NotFound: there is none.
//   - Internal: it does not work; says how.
//   - DeadlineExceeded: no answer.
absl::StatusOr<PythonFacts> AskPython();

// Horovod's table. Pure.
std::string CheckBuildTable(const absl::StatusOr<PythonFacts>& python);

}  // namespace hvd::launcher

#endif  // LAUNCHER_CHECK_BUILD_H_
