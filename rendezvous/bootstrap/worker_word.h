// The worker's word: a secret by which a process shows that it was started as that worker, or by
// that worker.
#ifndef RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
#define RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::bootstrap {

// 128 random bits, for the environment variable HOROVOD_WORKER_WORD of one worker. Processes of
// other containers can find the agent's socket, but can't read this.
std::string NewWorkerWord();

// As many bits that nobody knows without `key`, which is secret; the same each time.
std::string WorkerWordOf(absl::string_view key, uint64_t worker);

// Compares in constant time.
// Errors:
//   - PermissionDenied: the hello's word is not `word`; gives the likely reason.
absl::Status CheckWorkerWord(const std::string& word, const pb::WorkerHello& hello);

}  // namespace hvd::rendezvous::bootstrap

#endif  // RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
