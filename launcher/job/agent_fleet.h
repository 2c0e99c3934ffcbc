// The set of agent processes that the launcher has started for a job.
#ifndef LAUNCHER_JOB_AGENT_FLEET_H_
#define LAUNCHER_JOB_AGENT_FLEET_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/console/output_sink.h"
#include "launcher/job/job_events.h"
#include "launcher/job/rank_filter.h"
#include "launcher/spawn/agent_process.h"

namespace hvd::launcher::job {

// AgentProcess::Start, or a test's replacement.
using StartAgent = std::function<absl::StatusOr<std::unique_ptr<spawn::AgentProcess>>(
    const spawn::AgentTarget&, const pb::AgentBootstrap&, spawn::AgentProcess::Callbacks)>;

// Posts agents' events to `events` and writes workers' output to `output`, which shows what
// `filter` chooses; all must outlive the fleet. Not thread-safe: for the thread of the job's loop.
// The destructor kills the remaining agents and waits for them.
class AgentFleet {
 public:
  AgentFleet(StartAgent start, JobEventQueue& events, console::OutputSink& output,
             const RankFilter& filter)
      : start_(std::move(start)), events_(events), output_(output), filter_(filter) {}

  // Starts an agent and returns its number: 0, 1, ... Numbers are never reused.
  // Errors: those of AgentProcess::Start.
  absl::StatusOr<size_t> Start(const spawn::AgentTarget& target,
                               const pb::AgentBootstrap& bootstrap);

  void MarkReady(size_t agent) { agents_.at(agent).state = State::kReady; }
  void MarkExited(size_t agent);
  // Removes an agent that has exited. Its number must not be used any more.
  void Forget(size_t agent) { agents_.erase(agent); }

  std::vector<size_t> agents() const;
  const spawn::AgentTarget& target(size_t agent) const { return agents_.at(agent).target; }
  // Whether the agent is ready, or was ready before it exited.
  bool ready(size_t agent) const;
  bool AllExited() const;

  // See AgentProcess.
  void CloseInput(size_t agent) { agents_.at(agent).process->CloseInput(); }
  void Kill(size_t agent) { agents_.at(agent).process->Kill(); }
  void CloseAllInputs();
  void KillAll();

 private:
  //   kStarting --MarkReady--> kReady
  //       |                      |
  //   MarkExited             MarkExited
  //       v                      v
  //  kExitedEarly             kExited
  enum class State { kStarting, kReady, kExitedEarly, kExited };

  struct Agent {
    spawn::AgentTarget target;
    State state = State::kStarting;
    std::unique_ptr<spawn::AgentProcess> process;
  };

  const StartAgent start_;
  JobEventQueue& events_;
  console::OutputSink& output_;
  const RankFilter& filter_;
  size_t next_ = 0;
  std::map<size_t, Agent> agents_;
};

// "exit code 3" or "killed by signal 9 (Killed)", and the last line of its stderr, if any.
std::string DescribeExit(const spawn::AgentExit& exit);

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_AGENT_FLEET_H_
