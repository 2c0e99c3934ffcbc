// The inputs (Event) and outputs (Effect) of the membership state machine. Start reading here. All
// types are plain values; Membership::Apply (membership.h) maps an event to effects.
#ifndef RENDEZVOUS_MEMBERSHIP_EVENTS_H_
#define RENDEZVOUS_MEMBERSHIP_EVENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
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

// The id of a parked RPC. The server assigns it, and finishes the RPC when an effect names the id.
using CallId = StrongInt<struct CallIdTag, uint64_t>;

struct WorkerKey {
  WorkerId id;
  Incarnation incarnation;
};

// ---- Events

// An agent has attached: for the first time, or again with the same incarnation. Hosts that are not
// in JobSpec::expected_hosts are ordered by the time of attaching.
struct HostJoined {
  HostSlots host;
  Incarnation agent;
  std::vector<WorkerId> known_workers = {};  // every worker it was ever asked to start
  std::string store_address = {};            // see TorchGroup
  std::string commit_address = {};  // where its agent serves copies of commits; empty: it does not
  uint64_t commit = 0;              // the newest commit in its agent's memory; 0: none
};

// The complete list of hosts that exist now. Elastic jobs: a host that an earlier list had and this
// one lacks is drained. Hosts whose agents attached without ever being listed are unaffected,
// unless this is an offer.
struct HostsDiscovered {
  std::vector<HostSlots> hosts;
  // Only these hosts may take part, with at most these slots; agents of other hosts wait until an
  // offer names them. Applies to static jobs too, until they have started.
  bool is_offer = false;
};

// Elastic jobs: drains the host. Its workers leave at the next commit, so no step is lost. Workers
// that remain after `grace` are stopped and lose their uncommitted work.
struct HostDraining {
  std::string host;
  absl::Duration grace;
  std::string reason;
  bool at_once = false;  // its workers leave now, not at the next commit; also if it drains already
};

// The daemon was restarted: no agent is attached and no call is parked until agents and workers
// reconnect.
struct Restarted {};

// The agent's stream ended or timed out. The workers of the host count as lost.
struct HostLost {
  std::string host;
  Incarnation agent;
  std::string reason;
};

struct WorkerStarted {
  WorkerId worker;
  int64_t pid = 0;
};

// The kernel is tearing the process down: its locks are released, its memory is not freed yet.
// WorkerExited follows.
struct WorkerDying {
  WorkerId worker;
};

// The end of a worker's process, as its parent observed it.
struct WorkerExited {
  WorkerId worker;
  int exit_code = 0;  // if signal is 0
  int signal = 0;
  bool core_dumped = false;
  bool out_of_memory = false;
  std::vector<std::string> stderr_tail;
  std::string start_error;  // not empty: the process could not be started
  std::string killed_for;   // not empty: why its agent killed it
  std::string unknown_end;  // not empty: the exit code is unknown and set to 1; this describes the
                            // end instead
};

// The agent of `host` has completed a copy of another host's commit, or can't; see
// KeepCommitsEffect.
struct CommitKept {
  std::string host;
  uint64_t commit = 0;       // the newest in the agent's memory
  std::string failure = {};  // why no copy has come for some time; empty: one has come
};

// What the agent of `host` has in its memory has changed otherwise: a worker that ends has left a
// newer commit, or a copy was dropped. Comes before the report of that worker's end.
struct CommitLeft {
  std::string host;
  uint64_t commit = 0;  // the newest in the agent's memory; 0: none
};

// A worker's JoinWorld RPC: a request for the next world.
struct JoinRequested {
  CallId call;
  WorkerKey worker;
  Epoch last_epoch;
  std::string address;
  int port = 0;
  bool may_defer = false;  // ReplyDeferred is an acceptable answer, once the job has had a world
  uint64_t commit = 0;     // the newest commit that this worker can restore; 0: none
  // About its last world, if it was in one.
  bool worked = false;        // the script has completed an operation in it
  std::string left_for = {};  // the error that made it leave; empty: it was asked to
  uint64_t lost_steps = 0;    // done since `commit`
  absl::Duration lost_time = absl::ZeroDuration();  // since `commit`, or since training began
  bool caused_by_peer = false;                      // `left_for` is the loss of a peer
  // A rank of that world that the network does not reach: no connection came about, or one broke
  // because no answer came.
  std::optional<int> unreached = {};
};

// A worker's WatchEpoch RPC: parked until the epoch ends or is about to change.
struct WatchRequested {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  bool knows_of_change = false;  // it knows that the epoch is about to change
};

// A worker's Exchange RPC: its value for one round of an all-to-all exchange.
struct ExchangeRequested {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  std::string key;
  std::string value;
};

// A worker's Report RPC about its end. `failure` is empty if it finished.
struct Reported {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  bool finished = false;
  std::string failure;
  bool caused_by_peer = false;
  uint64_t commit = 0;  // the newest that a failed worker leaves in its agent's memory; 0: none
};

// What a worker knows of the checkpoints that it writes.
struct Checkpoints {
  uint64_t commit = 0;                            // of the newest one; 0: there is none
  absl::Duration age = absl::InfiniteDuration();  // of that commit; infinite: unknown
  std::string place;    // the newest one's path or URL, or the folder's if there is none
  std::string failure;  // why the last write failed; empty: it did not
};

// Rank 0's Report RPC about its progress. The answer OK means that its epoch is the newest one and
// not broken; rank 0's lease depends on that.
struct ProgressReported {
  CallId call;
  WorkerKey worker;
  Epoch epoch;
  uint64_t commit = 0;  // the newest commit; 0: none
  absl::Duration commit_age;
  // The commit with which training began in this world, 0: at the start; empty: it has not.
  std::optional<uint64_t> began_with = {};
  std::optional<Checkpoints> checkpoints = {};  // empty: it has none to report
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
  bool give_up = false;  // the limit has passed: the daemon must act
  std::vector<StalledOperations> waiting;
};

// A worker's current activity, found by its agent; the answer to SampleWorkerEffect.
struct WorkerSampled {
  WorkerId worker;
  std::string doing;               // "is at train.py:42 in load"
  std::vector<std::string> stack;  // innermost frame first; empty: not available
};

// The client cancelled a call. If it is still parked, it ends with Cancelled and its request is
// withdrawn.
struct CallCancelled {
  CallId call;
};

// A request to end the job (Ctrl-C, a scheduler). `exit_code` becomes the verdict's.
struct StopRequested {
  std::string reason;
  int exit_code = 0;
  absl::Duration grace;
  // The workers may still use their world during the grace, to save what they have: it breaks when
  // the first of them has ended.
  bool keeps_world = false;
  // Elastic jobs: all hosts drain within the grace (0: that of the job's drains), so that no step
  // is lost, and the job ends when the last worker has left. Without workers it ends at once.
  bool at_commit = false;
};

// Only time has passed; see Membership::NextDeadline.
struct Tick {};

// Elastic jobs: new limits for the size of worlds. Workers beyond the maximum leave at the next
// commit. No effect if the numbers contradict each other.
struct LimitsChanged {
  int min_workers = 1;
  int max_workers = 1;
};

using Event =
    std::variant<HostJoined, HostLost, HostsDiscovered, HostDraining, Restarted, WorkerStarted,
                 WorkerDying, WorkerExited, JoinRequested, WatchRequested, ExchangeRequested,
                 Reported, ProgressReported, StallReported, WorkerSampled, CallCancelled,
                 StopRequested, Tick, LimitsChanged, CommitKept, CommitLeft>;

// ---- Effects

struct WorldMember {
  WorkerKey worker;
  std::string host;
  std::string address;
  int port = 0;
  Placement place;
  uint64_t commit = 0;  // as in its JoinRequested
};

// The members of one epoch. Immutable, and the same for every member. Rank 0 holds the newest
// commit that any member has.
struct World {
  Epoch epoch;
  std::vector<WorldMember> members;  // in rank order
  bool sync_state = false;           // some member lacks rank 0's state
  bool homogeneous = true;           // every machine has the same number of members
};
// Shared by all recipients: one copy for each of n members would take O(n²) memory.
using WorldPtr = std::shared_ptr<const World>;

struct StartWorkerEffect {
  Incarnation agent;
  std::string host;
  WorkerId worker;
  Placement place;
  int slot = 0;  // on its host; a replacement gets the slot of the worker that it replaces
  // An upper bound, for all later worlds, of the members on this machine; 0: place.local_size.
  int most_on_machine = 0;
  TorchGroup torch = {};  // static jobs
};

struct StopWorkersEffect {
  Incarnation agent;
  std::string host;
  std::vector<WorkerId> workers;
  absl::Duration grace;  // from SIGTERM to SIGKILL
};

// Asks the agent for the worker's current activity; WorkerSampled answers it. The machine waits for
// a limited time.
struct SampleWorkerEffect {
  Incarnation agent;
  std::string host;
  WorkerId worker;
};

// Makes the agent keep a copy of each new commit of a host on another machine. Without an address:
// it drops its copy.
struct KeepCommitsEffect {
  Incarnation agent;
  std::string host;
  std::string from;          // the other host
  std::string from_address;  // HostJoined::commit_address of `from`; empty: stop
};

// The host is not offered to the job: its agent stays attached and waits.
struct HoldHostEffect {
  Incarnation agent;
  std::string host;
  bool took_part = false;  // it took part until now, so its slots become free
};

struct EndJobEffect {
  Incarnation agent;
  std::string host;
  absl::Duration grace = {};
  int exit_code = 0;         // the verdict's; 0 if the host leaves before the verdict
  std::string summary = {};  // likewise
};

struct ReplyWorld {
  CallId call;
  WorldPtr world;
  int rank = 0;  // the caller's
};

// Answers a JoinRequested with may_defer: the worker should get ready and ask again. The placement
// is provisional, computed for the present state.
struct ReplyDeferred {
  CallId call;
  WorldMember member;
};

// Answers a JoinRequested: the worker is no longer needed and should exit with 0.
struct ReplyReleased {
  CallId call;
  std::string reason;
};

enum class EpochChange {
  kBroken,    // collectives can't complete any more
  kChanging,  // another world is planned: ask for it at the next commit
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

// Ends a call without a value: OK for Report, or an error for any call.
struct ReplyStatus {
  CallId call;
  absl::Status status;
};

// The result of a job. Exit codes:
// - 0: success;
// - the exit code of the worker that is the root cause, or 128 + its signal;
// - 1 if that worker has no such code (its host was lost, it exited with 0 without having finished,
//   or it could not be started);
// - the code of StopRequested.
struct Verdict {
  bool success = false;
  int exit_code = 0;
  std::string summary;  // one line

  // The root cause, if a worker failed: the first failure in causal order, which need not be the
  // first one reported.
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
    kWorkerLeft,    // exited cleanly: finished, or released
    kEpochBroken,
    kEpochChanging,
    kWorldFormed,
    kWaiting,      // below min_workers
    kSlotCooling,  // a slot or host is in cooldown after failures
    kStalled,      // operations wait for some ranks; also in static jobs
    kStack,        // the complete stack of one of those ranks
    kRestarted,    // the daemon was restarted; also in static jobs
    kHostBack,     // its agent has attached again after a restart; also in static jobs
    kWorldIdle,    // the world ended although no worker had failed
    kLimitsChanged,
    kHostWaits,          // its agent waits: the host is not offered to the job
    kCommitsKept,        // a host has copies of the commits of another one
    kCommitsNotKept,     // it can't copy them
    kWorldBegan,         // rank 0 of the newest world has said with which commit training goes on
    kCheckpointWritten,  // the first one, or the first one after a failure
    kCheckpointFailed,   // one could not be written; not each time
    kJobEnding,          // the job was asked to end; also in static jobs
    kDrainCancelled,     // the host stays: it is listed or offered again
  };
  Kind kind;
  Epoch epoch;       // the current one; kWorkerFailed: of the newest world that the worker was in
  std::string host;  // empty: not about a host
  WorkerId worker;   // 0: not about a worker
  int rank = -1;     // of that worker; -1: it has none
  int size = 0;      // kWorldFormed
  // kWorldFormed: the newest commit of a member. kWorldBegan: the one with which training goes on.
  uint64_t commit = 0;
  // In one of these two, after a broken world: the work done since that commit.
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
