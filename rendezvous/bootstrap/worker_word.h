// The word by which a worker shows that it is the process that was started as that worker, or was
// itself started by that one.
#ifndef RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
#define RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_

#include <string>

#include "absl/status/status.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::bootstrap {

// 128 random bits, for the environment variable HOROVOD_WORKER_WORD of one worker. Other containers
// can't read that, though they find the agent's socket.
std::string NewWorkerWord();

// Takes equally long whatever the hello's word is.
//   PermissionDenied: it is not `word`; says what may be the reason.
absl::Status CheckWorkerWord(const std::string& word, const pb::WorkerHello& hello);

}  // namespace hvd::rendezvous::bootstrap

#endif  // RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
