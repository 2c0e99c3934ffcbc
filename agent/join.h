// The agent of `horovod-agent --join`, whose bootstrap comes from its command line, environment and
// directory, since it has no launcher.
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

// Reads the token file, waiting for it as long as options.start_timeout, and resolves the daemons'
// names, without a limit of time.
// Errors: one line for the user.
//   - InvalidArgument: a part of the bootstrap is not available.
absl::StatusOr<pb::AgentBootstrap> MakeJoinBootstrap(const JoinOptions& options);

// What each connection to the daemon goes to, if not to the address that is found first. Several
// daemons: all their addresses, because another one may lead then. "name:port" if the name is to be
// resolved for each connection: a name with one address, which may move, as a Kubernetes Service's.
// Else empty.
std::string DaemonName(const JoinOptions& options, const pb::AgentBootstrap& bootstrap);

// Runs an agent with its output on this process's stdout and stderr, until the job or `starter`
// ends. With an `adoptee` the worker is that process, and stdin and stdout are its. Returns and
// REQUIRES what Agent does.
int RunJoinedAgent(EventLoop& loop, const JoinOptions& options, const os::Starter& starter,
                   std::optional<os::OtherProcess> adoptee, const pb::AgentBootstrap& bootstrap,
                   Agent::OpenLink open_link);

}  // namespace hvd::agent

#endif  // AGENT_JOIN_H_
