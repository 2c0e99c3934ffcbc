// Failpoints: named places between two effects, where tests let a process crash, pause or fail.
// They are off unless HOROVOD_FAILPOINTS is set; then a pass costs one relaxed load.
//
//   FAILPOINT("agent.exit.reaped");
//   RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.journal.written"));
//
// The name is looked up when the place is compiled: points.h has all. The variable is a list of
// items, with semicolons between them:
//
//   POINT=ACTION[@N]  POINT is a name, or all points of a program: "agent.*". Without @N the action
//                     is taken at each pass, else only at the Nth one of a process.
//   once=FOLDER       Each point acts once among all processes that have this folder: the one that
//                     creates the file FOLDER/POINT does. So a point shows that it was passed, and
//                     a process that crashed there does not crash again.
//
// Actions: crash (SIGKILL), delay:DURATION ("300ms"), error (what the place returns is an error;
// refused for a point that can't fail, which the points of a program skip), pass (nothing, but it
// counts for `once`), off. A later item replaces an earlier one of the same point. The value "list"
// prints the points of the program, one per line, and those that can fail with " error" behind.
#ifndef BASE_FAILPOINT_FAILPOINT_H_
#define BASE_FAILPOINT_FAILPOINT_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <type_traits>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/failpoint/points.h"

namespace hvd::failpoint {

inline constexpr char kVariable[] = "HOROVOD_FAILPOINTS";

// Switches the points of `program` ("daemon", "agent", ...) on, as `text` says; points of other
// programs are only checked. May be called again, which begins anew. Not thread-safe: call it
// before other threads pass points.
// Errors:
//   - InvalidArgument: the text is malformed; one line that says what is.
absl::Status Arm(absl::string_view program, absl::string_view text);

// Calls Arm with the process's variable, if it is set. Ends the process after one line on stderr:
// with exit code 2 if the variable is malformed, or with 0 after a list.
void ArmByVariable(absl::string_view program);

// The points of a program: what the value "list" prints.
std::string List(absl::string_view program);

// Whether any point is on.
inline std::atomic<bool> armed{
    false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// Takes the action of a point, whatever `armed` says. Thread-safe.
absl::Status Act(size_t point);

template <size_t point>
absl::Status PassWithStatus() {
  static_assert(point < kCount, "points.h has no failpoint of this name");
  static_assert(CanFail(point), "the failpoint of this name has no error");
  if (ABSL_PREDICT_TRUE(!armed.load(std::memory_order_relaxed))) return absl::OkStatus();
  return Act(point);
}

template <size_t point>
void Pass() {
  static_assert(point < kCount, "points.h has no failpoint of this name");
  static_assert(!CanFail(point), "the error of the failpoint of this name would be lost");
  if (ABSL_PREDICT_FALSE(armed.load(std::memory_order_relaxed))) Act(point).IgnoreError();
}

}  // namespace hvd::failpoint

#define FAILPOINT(name) ::hvd::failpoint::Pass<::hvd::failpoint::Find(name)>()
#define FAILPOINT_STATUS(name) ::hvd::failpoint::PassWithStatus<::hvd::failpoint::Find(name)>()

#endif  // BASE_FAILPOINT_FAILPOINT_H_
