// The agent without a launcher (`horovod-agent --join`), which makes its bootstrap message from its
// command line, environment and working directory.
#ifndef AGENT_JOIN_H_
#define AGENT_JOIN_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agent/agent.h"
#include "agent/join_options.h"
#include "base/os/other_process.h"
#include "base/os/starter.h"
#include "proto/agent.pb.h"

namespace hvd::agent {

// Makes the bootstrap message. Waits for the token file for up to options.start_timeout, and
// resolves the daemons' names without a time limit.
// Errors: one line for the user.
//   - InvalidArgument: a part of the bootstrap is missing or invalid.
absl::StatusOr<pb::AgentBootstrap> MakeJoinBootstrap(const JoinOptions& options);

// The value for AgentSettings::daemon_name:
//   - several daemons: all their addresses, since the leader may change.
//   - one name with one address: "name:port", so that each connection resolves the name anew; the
//     address may move, as that of a Kubernetes Service.
//   - otherwise empty: the address that the route search has found.
std::string DaemonName(const JoinOptions& options, const pb::AgentBootstrap& bootstrap);

// Runs an agent with its output on this process's stdout and stderr, until the job or `starter`
// ends. An `adoptee` is the only worker; stdin and stdout are then the connection to it. Return
// value and requirements are those of Agent::Run and Agent.
int RunJoinedAgent(EventLoop& loop, const JoinOptions& options, const os::Starter& starter,
                   std::optional<os::OtherProcess> adoptee, const pb::AgentBootstrap& bootstrap,
                   Agent::OpenLink open_link);

}  // namespace hvd::agent

#endif  // AGENT_JOIN_H_
