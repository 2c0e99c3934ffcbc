// The alphabet of the membership machine: what may happen to a job (Event) and what has to be done
// about it (Effect). Read this first. Everything here is a plain value; the machine in membership.h
// maps one to the other.
#ifndef RENDEZVOUS_MEMBERSHIP_EVENTS_H_
#define RENDEZVOUS_MEMBERSHIP_EVENTS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"

namespace hvd {

// A parked call of a client; the shell gives the numbers and finishes the call when an effect names
// it.
using CallId = StrongInt<struct CallIdTag, uint64_t>;

struct HostSlots {
  std::string host;  // as the user wrote it
  int slots = 0;
};

struct WorkerKey {
  WorkerId id;
  Incarnation incarnation;
};

// ---- Events

// An agent has attached. Hosts that are not expected (see JobSpec) take part in the order in which
// they come.
struct HostJoined {
  HostSlots host;
  Incarnation agent;
};

// The agent's stream has ended or timed out. Its workers are as good as dead.
struct HostLost {
  std::string host;
  Incarnation agent;
  std::string reason;
};

struct WorkerStarted {
  WorkerId worker;
  int64_t pid = 0;
};

// How a process ended, as its parent saw it.
struct WorkerExited {
  WorkerId worker;
  int exit_code = 0;  // if signal is 0
  int signal = 0;
  bool core_dumped = false;
  bool out_of_memory = false;
  std::vector<std::string> stderr_tail;
  std::string start_error;  // not empty: there never was a process
};

// The worker's call JoinWorld.
struct JoinRequested {
  CallId call;
  WorkerKey worker;
  Epoch last_epoch;
  std::string address;
  int control_port = 0;
};

// The worker's call WatchEpoch.
struct WatchRequested {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
};

// The worker's call Exchange.
struct ExchangeRequested {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  std::string key;
  std::string value;
};

// The worker's call Report. `failure` is empty if it said that it finished.
struct Reported {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  bool finished = false;
  std::string failure;
  bool caused_by_peer = false;
};

// The caller gave up. If the call is still parked it ends with Cancelled, and what it asked for is
// withdrawn.
struct CallCancelled {
  CallId call;
};

// Whoever owns the job wants it to end (Ctrl-C, a scheduler). `exit_code` becomes the verdict's.
struct StopRequested {
  std::string reason;
  int exit_code = 0;
  absl::Duration grace;
};

// Time has passed; nothing else happened.
struct Tick {};

using Event =
    std::variant<HostJoined, HostLost, WorkerStarted, WorkerExited, JoinRequested, WatchRequested,
                 ExchangeRequested, Reported, CallCancelled, StopRequested, Tick>;

// ---- Effects

struct WorldMember {
  WorkerKey worker;
  std::string host;
  std::string address;
  int control_port = 0;
  int rank = 0;
  int local_rank = 0;
  int local_size = 0;
  int cross_rank = 0;
  int cross_size = 0;
};

// Immutable; every member of the epoch is told the same.
struct World {
  Epoch epoch;
  std::vector<WorldMember> members;  // in rank order
};

struct StartWorkerEffect {
  Incarnation agent;
  std::string host;
  WorkerId worker;
  int rank = 0;
  int size = 0;
  int local_rank = 0;
  int local_size = 0;
  int cross_rank = 0;
  int cross_size = 0;
};

struct StopWorkersEffect {
  Incarnation agent;
  std::string host;
  std::vector<WorkerId> workers;
  absl::Duration grace;  // from SIGTERM to SIGKILL
};

struct EndJobEffect {
  Incarnation agent;
  std::string host;
  absl::Duration grace;
};

struct ReplyWorld {
  CallId call;
  World world;
};

struct ReplyWatch {
  CallId call;
  bool job_over = false;  // else: the epoch is broken
  std::string reason;
};

struct ReplyExchange {
  CallId call;
  std::vector<std::string> values;  // in rank order
};

// Ends a call without a value: OK for Report, an error for any.
struct ReplyStatus {
  CallId call;
  absl::Status status;
};

// How a job ended, and why. Exit codes: 0 success; the first failing worker's own code, or 128 +
// its signal; 1 where there is none (a lost host, exit 0 without having finished, a start that
// failed); StopRequested's code.
struct Verdict {
  bool success = false;
  int exit_code = 0;
  std::string summary;  // one line

  // The root cause, if a worker failed: the first in causal order, not in the log's.
  int rank = -1;  // -1: no worker is to blame
  std::string host;
  std::string exit_meaning;  // "exit code 3", "killed by signal 9 (SIGKILL), out of memory", ...
  std::string exception;     // its own word, if it said one
  std::vector<std::string> stderr_tail;  // its last lines, oldest first
  int consequences = 0;                  // other ranks that failed because of it
};

struct JobFinished {
  Verdict verdict;
};

using Effect = std::variant<StartWorkerEffect, StopWorkersEffect, EndJobEffect, ReplyWorld,
                            ReplyWatch, ReplyExchange, ReplyStatus, JobFinished>;

}  // namespace hvd

#endif  // RENDEZVOUS_MEMBERSHIP_EVENTS_H_
