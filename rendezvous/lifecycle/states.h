// The states of a job and of a worker, as shown to users.
#ifndef RENDEZVOUS_LIFECYCLE_STATES_H_
#define RENDEZVOUS_LIFECYCLE_STATES_H_

#include "absl/strings/string_view.h"

namespace hvd::rendezvous::lifecycle {

enum class JobState {
  kForming,    // no world yet; in a static job also: until every member asks for the next one
  kRunning,    // in a world
  kResetting,  // elastic jobs: the next world is awaited
  kDone,
  kFailed,
};

// No world is up: workers are awaited.
bool IsWaiting(JobState state);
// The verdict is known.
bool IsOver(JobState state);

// A summary of the worker's WorkerLifecycle and of its calls.
enum class WorkerState {
  kStarting,  // was in no world yet
  kJoining,   // asks for a world
  kRunning,   // a member of the newest world
  kLeaving,   // it fails, or is about to end
  kFinished,
  kFailed,
};

// The names in GetStatus, in the metrics and in the status line: "forming".
absl::string_view StateName(JobState state);
absl::string_view StateName(WorkerState state);

}  // namespace hvd::rendezvous::lifecycle

#endif  // RENDEZVOUS_LIFECYCLE_STATES_H_
