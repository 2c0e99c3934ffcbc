// The bootstrap of a worker: gets its credentials from the agent that started it.
#ifndef WORKER_RUNTIME_SESSION_BOOTSTRAP_H_
#define WORKER_RUNTIME_SESSION_BOOTSTRAP_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "base/ids.h"
#include "proto/agent.pb.h"

namespace hvd::worker_runtime::session {

struct AgentAnswer {
  pb::WorkerBootstrap bootstrap;
  // Empty if the agent sent none.
  Fd liveness_page;  // base/os/liveness_page.h
  Fd commit_arena;   // worker_runtime/commit_store/commit_arena.h
  Fd kept_commits;   // worker_runtime/commit_store/arena_view.h
  Fd stack_pipe;     // for the stack, on bootstrap.stack_signal
};

// Asks at the agent's abstract unix socket (its name without the leading zero byte), with the word
// that the worker was given. Asks again if the agent hangs up without an answer, which may happen
// when strangers crowd its socket.
// Errors:
//   - Unavailable: nothing listens there: the agent is gone.
//   - PermissionDenied: refused, with the agent's message; or another user listens there.
//   - DeadlineExceeded: no answer within `timeout`.
absl::StatusOr<AgentAnswer> FetchBootstrap(const std::string& socket_name, WorkerId worker,
                                           const std::string& word, absl::Duration timeout);

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_BOOTSTRAP_H_
