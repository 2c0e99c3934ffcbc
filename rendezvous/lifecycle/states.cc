#include "rendezvous/lifecycle/states.h"

namespace hvd::rendezvous::lifecycle {

bool IsWaiting(JobState state) {
  return state == JobState::kForming || state == JobState::kResetting;
}

bool IsOver(JobState state) { return state == JobState::kDone || state == JobState::kFailed; }

absl::string_view StateName(JobState state) {
  switch (state) {
    case JobState::kForming:
      return "forming";
    case JobState::kRunning:
      return "running";
    case JobState::kResetting:
      return "resetting";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      break;
  }
  return "failed";
}

absl::string_view StateName(WorkerState state) {
  switch (state) {
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kJoining:
      return "joining";
    case WorkerState::kRunning:
      return "running";
    case WorkerState::kLeaving:
      return "leaving";
    case WorkerState::kFinished:
      return "finished";
    case WorkerState::kFailed:
      break;
  }
  return "failed";
}

}  // namespace hvd::rendezvous::lifecycle
