// The session of a worker that an agent has started, from the agent's answer to it.
#ifndef WORKER_RUNTIME_SESSION_AGENT_SESSION_H_
#define WORKER_RUNTIME_SESSION_AGENT_SESSION_H_

#include <memory>

#include "absl/time/time.h"
#include "proto/agent.pb.h"
#include "worker_runtime/session/rendezvous_session.h"

namespace hvd::worker_runtime::session {

// Returns a session of a new incarnation of the worker. It connects with its first call. `patience`
// is the time for which the daemon may be silent.
std::shared_ptr<Session> OpenAgentSession(const pb::WorkerBootstrap& bootstrap,
                                          absl::Duration patience);

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_AGENT_SESSION_H_
