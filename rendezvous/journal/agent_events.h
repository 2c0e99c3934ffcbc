// The events that messages of agents stand for, and the checks of these messages, which come from
// other hosts. Pure.
#ifndef RENDEZVOUS_JOURNAL_AGENT_EVENTS_H_
#define RENDEZVOUS_JOURNAL_AGENT_EVENTS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/ids.h"
#include "proto/agent.pb.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::journal {

// Errors:
//   - InvalidArgument: a field has an impossible value; names it.
//   - FailedPrecondition: the agent has another version.
absl::Status CheckHello(const pb::AgentHello& hello);

// Errors:
//   - InvalidArgument: a number can't be what it stands for; names it.
absl::Status CheckNumbers(const pb::AgentMessage& message);

// REQUIRES: CheckHello(hello) is OK.
membership::HostJoined EventOf(const pb::AgentHello& hello);

// The event of a message from the agent of `host`; nullopt: it stands for none.
// REQUIRES: CheckNumbers(message) is OK.
std::optional<membership::Event> EventOf(const std::string& host, const pb::AgentMessage& message);

// The worker that the message is about; nullopt: it is about the host.
std::optional<WorkerId> WorkerOf(const pb::AgentMessage& message);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_AGENT_EVENTS_H_
