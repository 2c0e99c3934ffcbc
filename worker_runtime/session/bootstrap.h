// The bootstrap of a worker: fetches its credentials and shared descriptors from its agent.
#ifndef WORKER_RUNTIME_SESSION_BOOTSTRAP_H_
#define WORKER_RUNTIME_SESSION_BOOTSTRAP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "base/ids.h"
#include "proto/agent.pb.h"

namespace hvd::worker_runtime::session {

struct AgentAnswer {
  pb::WorkerBootstrap bootstrap;
  // Each of these is invalid if the agent has not sent it.
  Fd liveness_page;  // base/os/liveness_page.h
  Fd commit_arena;   // worker_runtime/commit_store/commit_arena.h
  Fd stack_pipe;     // where to write the Python stack on bootstrap.stack_signal
  Fd fault_page;     // rehearsal/page/fault_page.h
};

// Asks the agent at its abstract unix socket. `socket_names`: HOROVOD_AGENT_SOCKET, see
// proto/agent.proto. `word` is the secret that the agent has given to the worker. Asks again if the
// agent hangs up without an answer, which may happen when strangers crowd its socket. Errors:
//   - Unavailable: nothing listens there (the agent is gone), or the answer is invalid.
//   - PermissionDenied: the agent refuses, with its message, or only other users listen there.
//   - DeadlineExceeded: there was no answer within `timeout`.
absl::StatusOr<AgentAnswer> FetchBootstrap(const std::string& socket_names, WorkerId worker,
                                           const std::string& word, absl::Duration timeout);

// Asks the agent for the job's credentials and settings alone, without descriptors: for a process
// that takes no part in worlds, which may be any descendant of the worker. Errors: those of
// FetchBootstrap.
absl::StatusOr<pb::WorkerBootstrap> FetchCredentials(const std::string& socket_names,
                                                     WorkerId worker, const std::string& word,
                                                     absl::Duration timeout);

// Asks the agent for the arena with the newest commit in its memory, of any worker of this host or
// a copy of another host's; invalid: there is none. Errors: those of FetchBootstrap.
absl::StatusOr<Fd> FetchNewestCommit(const std::string& socket_names, WorkerId worker,
                                     const std::string& word, absl::Duration timeout);

// Tells the agent the rank of what the worker writes from now on: its prefix and its file. What it
// wrote before has the earlier one. Errors: those of FetchBootstrap.
absl::Status SetOutputRank(const std::string& socket_names, WorkerId worker,
                           const std::string& word, int rank, absl::Duration timeout);

}  // namespace hvd::worker_runtime::session

#endif  // WORKER_RUNTIME_SESSION_BOOTSTRAP_H_
