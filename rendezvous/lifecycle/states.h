// The states of a job and of a worker, as shown to users.
#ifndef RENDEZVOUS_LIFECYCLE_STATES_H_
#define RENDEZVOUS_LIFECYCLE_STATES_H_

#include "absl/strings/string_view.h"

namespace hvd::rendezvous::lifecycle {

enum class JobState {
  kForming,    // no world yet; static jobs: also while members ask for the next world
  kRunning,    // in a world
  kResetting,  // elastic jobs: between two worlds
  kDone,
  kFailed,
};

// Whether there is no world, and workers are awaited.
bool IsWaiting(JobState state);
// Whether the verdict is known.
bool IsOver(JobState state);

// A summary of the worker's lifecycle (worker_lifecycle.h) and its parked call.
enum class WorkerState {
  kStarting,  // has not asked for a world yet, and was in none
  kJoining,   // asks for a world
  kRunning,   // a member of the newest world
  kLeaving,   // it fails, or was asked to leave
  kFinished,
  kFailed,
};

// The state's name in GetStatus, metrics and status lines: "forming".
absl::string_view StateName(JobState state);
absl::string_view StateName(WorkerState state);

}  // namespace hvd::rendezvous::lifecycle

#endif  // RENDEZVOUS_LIFECYCLE_STATES_H_
