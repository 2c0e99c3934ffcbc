// The inputs (Event) and outputs (Effect) of the membership state machine. All types are plain
// values; Membership::Apply (membership.h) maps an event to effects. The events are in
// event_types.h, which is made from proto/events.proto. Start reading there.
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
#include "rendezvous/membership/call_id.h"
#include "rendezvous/membership/event_types.h"
#include "rendezvous/placement/placement.h"
#include "rendezvous/placement/torch_variables.h"

namespace hvd::rendezvous::membership {

using placement::Placement;
using placement::TorchGroup;

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
  bool starts_anew = false;  // kWorldFormed: see JoinRequested; true of all members
  std::string text;          // one line
};

using Effect =
    std::variant<StartWorkerEffect, StopWorkersEffect, SampleWorkerEffect, KeepCommitsEffect,
                 HoldHostEffect, EndJobEffect, ReplyWorld, ReplyDeferred, ReplyReleased, ReplyWatch,
                 ReplyExchange, ReplyStatus, Notice, JobFinished>;

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EVENTS_H_
