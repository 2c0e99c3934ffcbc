// What may happen to the launcher while a job runs, and the queue through which every thread tells
// its one loop.
#ifndef LAUNCHER_JOB_JOB_EVENTS_H_
#define LAUNCHER_JOB_JOB_EVENTS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "launcher/plan/plan.h"
#include "launcher/spawn/agent_process.h"
#include "rendezvous/membership/events.h"

namespace hvd::launcher::job {

// Agents go by their numbers in AgentFleet.
struct AgentIsReady {
  size_t agent;
  std::string warning;  // one line for the user, or empty
};
struct AgentHasRefused {
  size_t agent;
  std::string message;
};
struct AgentHasExited {
  size_t agent;
  spawn::AgentExit exit;
};
struct JobHasFinished {
  rendezvous::membership::Verdict verdict;
};
struct NoticeHappened {
  rendezvous::membership::Notice notice;
  absl::Time when;
};
// Host discovery has found these, or says in one line why it found none; codes as HostScript's.
struct HostsFound {
  absl::StatusOr<std::vector<plan::PlannedHost>> hosts;
};
// SIGINT, SIGTERM or SIGHUP; or 0: stdin has ended, whose other end the program that started this
// one held.
struct StopSignal {
  int signal;
};
// Our stdout or stderr can't be written any more.
struct OutputIsBroken {
  bool is_stderr = false;
  int error = 0;  // of errno
};
struct OutputIsDrained {};

using JobEvent =
    std::variant<AgentIsReady, AgentHasRefused, AgentHasExited, JobHasFinished, NoticeHappened,
                 HostsFound, StopSignal, OutputIsBroken, OutputIsDrained>;

// Thread-safe.
class JobEventQueue {
 public:
  explicit JobEventQueue(Clock& clock = Clock::Real()) : clock_(clock) {}

  void Post(JobEvent event) ABSL_LOCKS_EXCLUDED(mutex_);

  // The oldest event; waits for one until `deadline`, then returns nullopt.
  std::optional<JobEvent> Next(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  Clock& clock() { return clock_; }

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  std::deque<JobEvent> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_EVENTS_H_
