// The secrets of a job's workers on one machine: a worker's word, with which a process proves that
// it was started as that worker, or by that worker; and the names of the socket that it asks.
#ifndef RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
#define RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_

#include <cstdint>
#include <string>
#include <vector>

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

// Derives the names of the socket at which a scheduler's workers get their credentials, in the
// order in which both sides try them. A name is known to others once it was in use, so they can
// take it while the scheduler is away. Then its next process listens under a name that nobody has
// seen. Deterministic; can't be computed without `key`.
std::vector<std::string> WorkerSocketNamesOf(absl::string_view key);

// Checks the word of a hello, in constant time.
// Errors:
//   - PermissionDenied: the hello's word is not `word`; gives the likely reason.
absl::Status CheckWorkerWord(const std::string& word, const pb::WorkerHello& hello);

}  // namespace hvd::rendezvous::bootstrap

#endif  // RENDEZVOUS_BOOTSTRAP_WORKER_WORD_H_
