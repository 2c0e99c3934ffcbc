// The worker's word: a secret with which a process proves that it was started as that worker, or by
// that worker.
#ifndef RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
#define RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::bootstrap {

// Creates a word of 128 random bits, for the environment variable HOROVOD_WORKER_WORD of one
// worker. Processes of other containers can connect to the agent's socket, but can't read this
// variable.
std::string NewWorkerWord();

// Derives a word of the same length from a secret key and the worker's id. Deterministic; can't be
// computed without `key`.
std::string WorkerWordOf(absl::string_view key, uint64_t worker);

// Checks the word of a hello, in constant time.
// Errors:
//   - PermissionDenied: the hello's word is not `word`; gives the likely reason.
absl::Status CheckWorkerWord(const std::string& word, const pb::WorkerHello& hello);

}  // namespace hvd::rendezvous::bootstrap

#endif  // RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
