// The events of a running job, and the queue that carries them to the launcher's loop.
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

// Agents are identified by their numbers in AgentFleet.
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
// The result of a host discovery: the hosts, or a one-line error with a code as in
// HostScript::Next.
struct HostsFound {
  absl::StatusOr<std::vector<plan::PlannedHost>> hosts;
};
// SIGINT, SIGTERM or SIGHUP; 0: the end of stdin, which means that the program at its other end,
// which started this one, has ended.
struct StopSignal {
  int signal;
};
// A scheduler's notice, for the workers.
struct NoticeSignal {
  int signal;
};
// The launcher's stdout or stderr can no longer be written.
struct OutputIsBroken {
  bool is_stderr = false;
  int error = 0;  // of errno
};
struct OutputIsDrained {};
// An agent's answer to a fault of a rehearsal.
struct FaultIsDone {
  uint64_t fault = 0;
  std::string problem;  // why it could not be done; empty: it was
  absl::Time when;
};

using JobEvent = std::variant<AgentIsReady, AgentHasRefused, AgentHasExited, JobHasFinished,
                              NoticeHappened, HostsFound, StopSignal, NoticeSignal, OutputIsBroken,
                              OutputIsDrained, FaultIsDone>;

// The event of a signal that StopSignalWatcher tells.
JobEvent EventOf(int signal);

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
