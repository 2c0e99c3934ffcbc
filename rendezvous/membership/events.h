// The alphabet of the membership machine: a job's inputs (Event) and the actions that they require
// (Effect). Read this first. Everything here is a plain value; the machine in membership.h maps
// events to effects.
#ifndef RENDEZVOUS_MEMBERSHIP_EVENTS_H_
#define RENDEZVOUS_MEMBERSHIP_EVENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/placement/placement.h"
#include "rendezvous/placement/torch_variables.h"

namespace hvd::rendezvous::membership {

using placement::HostSlots;
using placement::Placement;
using placement::TorchGroup;

// A parked call of a client. The shell assigns the numbers and finishes the call when an effect
// names it.
using CallId = StrongInt<struct CallIdTag, uint64_t>;

struct WorkerKey {
  WorkerId id;
  Incarnation incarnation;
};

// ---- Events

// An agent has attached, for the first time or (the same incarnation) again. Hosts that are not
// expected (see JobSpec) take part in the order of attaching.
struct HostJoined {
  HostSlots host;
  Incarnation agent;
  std::vector<WorkerId> known_workers = {};  // all that it was ever asked to start
  std::string store_address = {};            // for torch.distributed; see TorchGroup
  std::string commit_address = {};  // where its agent gives copies of commits; empty: nowhere
};

// Elastic jobs: all hosts that exist at present. Hosts of an earlier list that are missing in this
// one are drained. Hosts whose agents attached without being listed are not affected, unless this
// is an offer.
struct HostsDiscovered {
  std::vector<HostSlots> hosts;
  // No others may take part, with no more slots: their agents wait until an offer names them. Also
  // in static jobs, until they have started.
  bool is_offer = false;
};

// Elastic jobs: the host leaves soon and cleanly; no step is to be lost. After `grace` its
// remaining workers are stopped and lose what they have not committed.
struct HostDraining {
  std::string host;
  absl::Duration grace;
  std::string reason;
};

// The daemon has been restarted: no agent is attached and no call is parked, until they return.
struct Restarted {};

// The agent's stream has ended or timed out. Its workers count as lost.
struct HostLost {
  std::string host;
  Incarnation agent;
  std::string reason;
};

struct WorkerStarted {
  WorkerId worker;
  int64_t pid = 0;
};

// The process is dying: its resources are freed, but not yet its memory. WorkerExited follows.
struct WorkerDying {
  WorkerId worker;
};

// How a process ended, as its parent observed it.
struct WorkerExited {
  WorkerId worker;
  int exit_code = 0;  // if signal is 0
  int signal = 0;
  bool core_dumped = false;
  bool out_of_memory = false;
  std::vector<std::string> stderr_tail;
  std::string start_error;  // not empty: there never was a process
  std::string killed_for;   // not empty: its agent killed it, for this reason
  std::string unknown_end;  // not empty: exit_code is 1 for want of one; what is known instead
};

// The agent has a copy of another host's commit: see KeepCommitsEffect.
struct CommitKept {
  std::string host;
  uint64_t commit = 0;
};

// A worker's JoinWorld call.
struct JoinRequested {
  CallId call;
  WorkerKey worker;
  Epoch last_epoch;
  std::string address;
  int control_port = 0;
  bool may_defer = false;  // ReplyDeferred is acceptable if the job has had a world already
  uint64_t commit = 0;     // the newest commit that this worker can restore; 0: none
  // Of its last world, if it was in one.
  bool worked = false;        // an operation of the script's was completed
  std::string left_for = {};  // its own error; empty: it was asked to leave, or a peer had gone
  uint64_t lost_steps = 0;    // done since `commit`
  absl::Duration lost_time = absl::ZeroDuration();  // since `commit`, or since training began
};

// A worker's WatchEpoch call.
struct WatchRequested {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  bool knows_of_change = false;  // it knows that the epoch is about to change
};

// A worker's Exchange call.
struct ExchangeRequested {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  std::string key;
  std::string value;
};

// A worker's Report call. `failure` is empty if it reports that it finished.
struct Reported {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  bool finished = false;
  std::string failure;
  bool caused_by_peer = false;
};

// A worker's Report call with its progress. OK means that its epoch is the newest and whole.
struct ProgressReported {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  uint64_t commit = 0;  // the newest of all; 0: none
  absl::Duration commit_age;
};

// Operations that wait for the same ranks.
struct StalledOperations {
  std::string what;          // "allreduce 'grad.w' and 3 more"
  std::vector<int> missing;  // ranks of the epoch
};

// A worker's ReportStall call: it waits for ranks that have not submitted.
struct StallReported {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  absl::Duration waited;
  bool give_up = false;  // something is to be done about it
  std::vector<StalledOperations> waiting;
};

// What a worker is doing, as found by its agent: the answer to SampleWorkerEffect.
struct WorkerSampled {
  WorkerId worker;
  std::string doing;               // "is at train.py:42 in load"
  std::vector<std::string> stack;  // innermost frame first; empty: not available
};

// The caller gave up. If the call is still parked it ends with Cancelled, and its request is
// withdrawn.
struct CallCancelled {
  CallId call;
};

// The job's owner wants it to end (Ctrl-C, a scheduler). `exit_code` becomes the verdict's.
struct StopRequested {
  std::string reason;
  int exit_code = 0;
  absl::Duration grace;
};

// Time has passed; nothing else happened.
struct Tick {};

// Elastic jobs: from now on worlds have so many workers; those beyond the maximum leave at the next
// commit. Without effect if the numbers contradict each other.
struct LimitsChanged {
  int min_workers = 1;
  int max_workers = 1;
};

using Event =
    std::variant<HostJoined, HostLost, HostsDiscovered, HostDraining, Restarted, WorkerStarted,
                 WorkerDying, WorkerExited, JoinRequested, WatchRequested, ExchangeRequested,
                 Reported, ProgressReported, StallReported, WorkerSampled, CallCancelled,
                 StopRequested, Tick, LimitsChanged, CommitKept>;

// ---- Effects

struct WorldMember {
  WorkerKey worker;
  std::string host;
  std::string address;
  int control_port = 0;
  Placement place;
  uint64_t commit = 0;  // as in its JoinRequested
};

// Immutable; the same for every member of the epoch. Rank 0 holds the newest commit there is.
struct World {
  Epoch epoch;
  std::vector<WorldMember> members;  // in rank order
  bool sync_state = false;           // some member does not hold the state of rank 0
  bool homogeneous = true;           // there are as many members on every machine
};
// Shared by all recipients: a copy for each would take memory quadratic in the world's size.
using WorldPtr = std::shared_ptr<const World>;

struct StartWorkerEffect {
  Incarnation agent;
  std::string host;
  WorkerId worker;
  Placement place;
  int slot = 0;  // on its host: that of the worker whose place it takes
  // The largest number of a world's members that may share the machine in future; 0:
  // place.local_size.
  int most_on_machine = 0;
  TorchGroup torch = {};  // static jobs
};

struct StopWorkersEffect {
  Incarnation agent;
  std::string host;
  std::vector<WorkerId> workers;
  absl::Duration grace;  // from SIGTERM to SIGKILL
};

// Asks for the worker's current activity: WorkerSampled is awaited, for a limited time.
struct SampleWorkerEffect {
  Incarnation agent;
  std::string host;
  WorkerId worker;
};

// The agent is to keep copies of the commits on another machine, from now on the newest each time;
// or, if there is no address, to drop what it has.
struct KeepCommitsEffect {
  Incarnation agent;
  std::string host;
  std::string from;          // the other host
  std::string from_address;  // as in HostJoined; empty: no longer
};

// The host is not offered: its agent is to wait.
struct HoldHostEffect {
  Incarnation agent;
  std::string host;
  bool took_part = false;  // until now: its slots are free
};

struct EndJobEffect {
  Incarnation agent;
  std::string host;
  absl::Duration grace = {};
  int exit_code = 0;         // the verdict's; 0 for a host that leaves before there is a verdict
  std::string summary = {};  // likewise
};

struct ReplyWorld {
  CallId call;
  WorldPtr world;
  int rank = 0;  // the caller's
};

// To a JoinRequested that may be deferred: the worker is to get ready and then ask again. The place
// is the one it would get at this moment.
struct ReplyDeferred {
  CallId call;
  WorldMember member;
};

// To a JoinRequested: the worker is no longer wanted and is to exit with 0.
struct ReplyReleased {
  CallId call;
  std::string reason;
};

enum class EpochChange {
  kBroken,    // collectives can't complete any more
  kChanging,  // another world is wanted: ask for it at the next commit
  kJobOver,
};

struct ReplyWatch {
  CallId call;
  EpochChange change = EpochChange::kBroken;
  std::string reason;
};

struct ReplyExchange {
  CallId call;
  std::shared_ptr<const std::vector<std::string>> values;  // in rank order
};

// Ends a call without a value: OK for Report, an error for any.
struct ReplyStatus {
  CallId call;
  absl::Status status;
};

// How a job ended, and why. Exit codes: 0 success; the first failing worker's own code, or 128 +
// its signal; 1 if there is none (a lost host, exit 0 without having finished, a start that
// failed); StopRequested's code.
struct Verdict {
  bool success = false;
  int exit_code = 0;
  std::string summary;  // one line

  // The root cause, if a worker failed: the first in causal order, not in the log's.
  int rank = -1;  // -1: no worker is to blame
  std::string host;
  std::string exit_meaning;  // "exit code 3", "killed by signal 9 (SIGKILL), out of memory", ...
  std::string exception;     // the error that it reported, if any
  std::vector<std::string> stderr_tail;  // its last lines, oldest first
  int consequences = 0;                  // other ranks that failed because of it
};

struct JobFinished {
  Verdict verdict;
};

// An event of interest to users: for the event log, metrics and the summary.
struct Notice {
  enum class Kind {
    kHostJoined,
    kHostLost,
    kHostDraining,
    kHostLeft,      // left cleanly after a drain; cf. kDrainOverran
    kDrainOverran,  // had to be stopped after a drain's grace, or went too soon
    kWorkerStarted,
    kWorkerFailed,  // `text` says how; counts against the budget
    kWorkerLeft,    // cleanly: finished, or released
    kEpochBroken,
    kEpochChanging,
    kWorldFormed,
    kWaiting,      // below min_workers
    kSlotCooling,  // a slot or host is not used for a while
    kStalled,      // some ranks keep the others waiting; also in a static job
    kStack,        // ... and the whole stack of one of them
    kRestarted,    // the daemon; as the next also in a static job
    kHostBack,     // its agent has attached again
    kWorldIdle,    // ended before an operation of the script's was completed, without a failure
    kLimitsChanged,
    kHostWaits,    // it is not offered to the job
    kCommitsKept,  // a host has copies of the commits of another one
  };
  Kind kind;
  Epoch epoch;          // the present one; kWorkerFailed: of the newest world it was in, if any
  std::string host;     // empty: not about a host
  WorkerId worker;      // 0: not about a worker
  int rank = -1;        // of that worker; -1: it has none
  int size = 0;         // kWorldFormed
  uint64_t commit = 0;  // kWorldFormed: the newest there is
  // kWorldFormed after a broken one: work since the commit that it goes on from.
  uint64_t lost_steps = 0;
  absl::Duration lost_time = absl::ZeroDuration();
  std::string text;  // one line
};

using Effect =
    std::variant<StartWorkerEffect, StopWorkersEffect, SampleWorkerEffect, KeepCommitsEffect,
                 HoldHostEffect, EndJobEffect, ReplyWorld, ReplyDeferred, ReplyReleased, ReplyWatch,
                 ReplyExchange, ReplyStatus, Notice, JobFinished>;

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EVENTS_H_
