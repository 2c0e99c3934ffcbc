// The command, environment and directory of a host's workers: the job's command, resolved on this
// host.
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

// Resolves the command in the job's PATH and working directory. Replaces a directory that does not
// exist on this host by $HOME.
// Errors: one line that names the host.
//   - FailedPrecondition: the bootstrap is from another version.
//   - InvalidArgument: the bootstrap has no command.
//   - NotFound: there is no such command on this host.
//   - PermissionDenied: the command can't be executed.
//   - Internal: the agent's own program, which runs a command that restarts, is not found.
//
// `own` is the agent's environment: a scheduler sets there, and not in the job's environment, which
// GPUs this host's workers may use. A value given with `-x` takes precedence.
absl::StatusOr<LaunchPlan> MakeLaunchPlan(const pb::AgentBootstrap& bootstrap,
                                          const Environment& own = {});

// The plan of a host whose worker is an adopted process: a plan without a command.
LaunchPlan MakeAdoptionPlan(const pb::AgentBootstrap& bootstrap);

// The host-specific part of a worker's environment.
struct WorkerPlace {
  std::string daemon_address;  // "address:port"
  std::string own_address;     // numeric; by which peers reach this host
  std::string agent_socket;
  bool elastic = false;
  std::string interface = "";  // towards the other hosts; empty: unknown
  std::string word = "";       // the worker's secret; see NewWorkerWord
  int cores = 0;               // shared by the workers; 0: unknown
  int own_workers = 0;  // the most workers of this agent that share them; 0: all workers of the
                        // machine share them
  std::string job_id = "";
};

// The complete environment of a worker.
std::map<std::string, std::string> WorkerEnvironment(const LaunchPlan& plan,
                                                     const pb::StartWorker& start,
                                                     const WorkerPlace& place);

// Variables in the form "NAME=value".
std::vector<std::string> AsEntries(const std::map<std::string, std::string>& variables);

}  // namespace hvd::agent

#endif  // AGENT_LAUNCH_PLAN_H_
