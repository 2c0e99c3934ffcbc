// An agent that nobody launches: its bootstrap comes from its own command line, environment and
// directory.
#ifndef AGENT_JOIN_H_
#define AGENT_JOIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "agent/agent.h"
#include "agent/join_options.h"
#include "proto/agent.pb.h"

namespace hvd::agent {

// Reads the token file, for which it waits as long as options.start_timeout, and asks the resolver
// for the daemon's addresses, for as long as that takes.
//   InvalidArgument: one of them is not to be had; one line for the user.
absl::StatusOr<pb::AgentBootstrap> MakeJoinBootstrap(const JoinOptions& options);

// "name:port" of the daemon if it is to be looked up anew for each connection: a name with one
// address, which may move, as a Kubernetes Service's. Else empty.
std::string DaemonName(const JoinOptions& options, const pb::AgentBootstrap& bootstrap);

// The output goes to this process's stdout and stderr. Returns and REQUIRES what Agent does.
int RunJoinedAgent(EventLoop& loop, const JoinOptions& options, const pb::AgentBootstrap& bootstrap,
                   Agent::OpenLink open_link);

}  // namespace hvd::agent

#endif  // AGENT_JOIN_H_
