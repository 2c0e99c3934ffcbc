// The report of horovodrun --check-build: available features, and the reasons why others are
// missing.
#ifndef LAUNCHER_CHECK_BUILD_H_
#define LAUNCHER_CHECK_BUILD_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace hvd::launcher {

// The relevant packages of a Python interpreter.
struct PythonFacts {
  std::string executable;
  std::map<std::string, std::string> versions;  // by module, of installed ones
  std::string nccl_version = "";                // empty: none
  std::string keras_backend = "";               // the one that Keras 3 would use
};

// Queries the `python3` of the PATH, without slow imports.
// Errors:
//   - NotFound: there is none.
//   - Internal: the interpreter failed; gives its error.
//   - DeadlineExceeded: the interpreter did not answer in time.
absl::StatusOr<PythonFacts> AskPython();

// Formats the report in the layout of Horovod. Pure.
std::string CheckBuildTable(const absl::StatusOr<PythonFacts>& python);

}  // namespace hvd::launcher

#endif  // LAUNCHER_CHECK_BUILD_H_
