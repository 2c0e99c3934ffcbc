// The plan by which a host starts its workers: the job's command, resolved on this host.
#ifndef AGENT_LAUNCH_PLAN_H_
#define AGENT_LAUNCH_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "proto/agent.pb.h"

namespace hvd::agent {

struct LaunchPlan {
  std::string host;
  std::string file;  // absolute
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::string working_directory;
  std::string input;    // the contents of a worker's stdin
  std::string warning;  // not empty: one line for the user
};

// Searches for the command in the job's PATH and directory; a directory that is missing here is
// replaced by $HOME.
// Errors: one line that names the host.
//   - FailedPrecondition: the bootstrap is from another version.
//   - InvalidArgument: it lacks a command.
//   - NotFound: the command is not there.
//   - PermissionDenied: the command can't be executed.
//
// `own`: the agent's environment. Which GPUs a host's workers may use, a scheduler says there, not
// in the job's environment; `-x` wins over it.
absl::StatusOr<LaunchPlan> MakeLaunchPlan(const pb::AgentBootstrap& bootstrap,
                                          const Environment& own = {});

// The plan of a host whose worker runs already: it has no command.
LaunchPlan MakeAdoptionPlan(const pb::AgentBootstrap& bootstrap);

// The variables of a worker's environment beside the job's own.
struct WorkerPlace {
  std::string daemon_address;  // "address:port"
  std::string own_address;     // numeric, where peers reach this host
  std::string agent_socket;
  bool elastic = false;
  std::string interface = "";  // towards the other hosts; empty: unknown
  std::string word = "";       // the worker's own; see NewWorkerWord
  int cores = 0;               // that workers share; 0: unknown
  int own_workers = 0;  // the most that share them, if no other agent's do; 0: the machine's do
  std::string job_id = "";
};

// A worker's environment, complete.
std::map<std::string, std::string> WorkerEnvironment(const LaunchPlan& plan,
                                                     const pb::StartWorker& start,
                                                     const WorkerPlace& place);

// The same as "NAME=value".
std::vector<std::string> AsEntries(const std::map<std::string, std::string>& variables);

}  // namespace hvd::agent

#endif  // AGENT_LAUNCH_PLAN_H_
