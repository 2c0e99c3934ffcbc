// How this host starts workers: the job's command as it is found here.
#ifndef AGENT_LAUNCH_PLAN_H_
#define AGENT_LAUNCH_PLAN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/agent.pb.h"

namespace hvd::agent {

struct LaunchPlan {
  std::string host;
  std::string file;  // absolute
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::string working_directory;
  std::string input;    // what a worker finds on its stdin
  std::string warning;  // not empty: one line for the user
};

// Looks for the command in the job's PATH and directory; a directory that is missing here is
// replaced by $HOME.
//   FailedPrecondition: the bootstrap is from another version.
//   InvalidArgument: it lacks a command.   NotFound: the command is not there.   PermissionDenied:
//   it can't be executed.
// Each message is one line that names the host.
absl::StatusOr<LaunchPlan> MakeLaunchPlan(const pb::AgentBootstrap& bootstrap);

// What a worker finds in its environment besides the job's own variables.
struct WorkerPlace {
  std::string daemon_address;  // "address:port"
  std::string agent_socket;
  bool elastic = false;
  std::string interface = "";  // that reaches the other hosts; empty: not known
  std::string word = "";       // the worker's own; see NewWorkerWord
  int cores = 0;               // that this host's workers share; 0: not known
};

// Complete, as "NAME=value".
std::vector<std::string> WorkerEnvironment(const LaunchPlan& plan, const pb::StartWorker& start,
                                           const WorkerPlace& place);

}  // namespace hvd::agent

#endif  // AGENT_LAUNCH_PLAN_H_
