// The list of all failpoints. See failpoint.h.
#ifndef BASE_FAILPOINT_POINTS_H_
#define BASE_FAILPOINT_POINTS_H_

#include <cstddef>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::failpoint {

struct Definition {
  absl::string_view name;  // begins with the program that has it
  // What the action `error` returns there, of the kind of that place's own errors; kOk: the place
  // can't fail.
  absl::StatusCode error = absl::StatusCode::kOk;
};

// A name says what has been done when the point is passed; what follows has not been done yet.
inline constexpr Definition kPoints[] = {
    // The journal and the identity of a job, in files.
    {"daemon.identity.written", absl::StatusCode::kInternal},
    {"daemon.identity.renamed", absl::StatusCode::kInternal},
    {"daemon.journal.encoded", absl::StatusCode::kInternal},
    {"daemon.journal.written", absl::StatusCode::kInternal},
    {"daemon.journal.synced"},
    {"daemon.snapshot.written", absl::StatusCode::kInternal},
    {"daemon.snapshot.renamed", absl::StatusCode::kInternal},
    {"daemon.snapshot.durable"},
    // The same in etcd.
    {"daemon.etcd.lease_granted", absl::StatusCode::kUnavailable},
    {"daemon.etcd.elected", absl::StatusCode::kUnavailable},
    {"daemon.etcd.loaded", absl::StatusCode::kUnavailable},
    {"daemon.etcd.written", absl::StatusCode::kUnavailable},
    {"daemon.etcd.lease_renewed", absl::StatusCode::kUnavailable},
    // The start of a daemon.
    {"daemon.start.recovered", absl::StatusCode::kInternal},
    {"daemon.start.restarted"},
    {"daemon.start.token_written", absl::StatusCode::kInternal},
    {"daemon.start.listening", absl::StatusCode::kInternal},
    {"daemon.start.addresses_kept"},
    // What comes in.
    {"daemon.host.welcomed"},
    {"daemon.host.lost"},
    {"daemon.exit.received"},
    {"daemon.dying.received"},
    {"daemon.commit_left.received"},
    {"daemon.commit_kept.received"},
    {"daemon.drain.received"},
    {"daemon.join.received"},
    {"daemon.finished.received"},
    {"daemon.checkpoint.received"},
    // Decisions, and the messages that carry them.
    {"daemon.event.recorded"},
    {"daemon.event.decided"},
    {"daemon.start_worker.sent"},
    {"daemon.stop_workers.sent"},
    {"daemon.keep_commits.sent"},
    {"daemon.end_host.sent"},
    {"daemon.world.answered"},
    {"daemon.deferred.answered"},
    {"daemon.released.answered"},
    {"daemon.watch.answered"},
    {"daemon.exchange.answered"},
    {"daemon.report.answered"},
    {"daemon.verdict.decided"},
    {"daemon.verdict.told"},

    // The guard.
    {"agent.guard.forked"},
    {"agent.guard.ended"},

    // An agent attaches.
    {"agent.attach.ready", absl::StatusCode::kUnavailable},
    {"agent.attach.announced"},
    {"agent.attach.opened"},
    {"agent.attach.welcomed"},
    {"agent.attach.lost"},
    {"agent.attach.again"},
    // A worker's process.
    {"agent.worker.ordered"},
    {"agent.worker.forked", absl::StatusCode::kResourceExhausted},
    {"agent.worker.watched"},
    {"agent.worker.told"},
    {"agent.worker.equipped"},
    {"agent.dying.noticed"},
    {"agent.exit.commit_told"},
    {"agent.exit.reaped"},
    {"agent.exit.told"},
    // Copies of commits.
    {"agent.copy.ordered"},
    {"agent.copy.begun", absl::StatusCode::kUnavailable},
    {"agent.copy.filled", absl::StatusCode::kAborted},
    {"agent.copy.sealed"},
    {"agent.copy.told"},
    {"agent.source.head_sent", absl::StatusCode::kUnavailable},
    {"agent.source.sent"},
    {"agent.newest_commit.asked"},
    // The end.
    {"agent.drain.decided"},
    {"agent.drain.told"},
    {"agent.end.ordered"},
    {"agent.end.workers_gone"},
    {"agent.end.detached"},

    // A worker joins a world.
    {"worker.bootstrap.fetched", absl::StatusCode::kUnavailable},
    {"worker.bootstrap.store_opened", absl::StatusCode::kUnavailable},
    {"worker.join.listening", absl::StatusCode::kUnavailable},
    {"worker.join.deferred"},
    {"worker.join.answered"},
    {"worker.connect.watching", absl::StatusCode::kUnavailable},
    {"worker.connect.dialled", absl::StatusCode::kUnavailable},
    {"worker.connect.data_plane", absl::StatusCode::kUnavailable},
    {"worker.connect.engine_started", absl::StatusCode::kUnavailable},
    {"worker.join.connected"},
    // An operation.
    {"worker.operation.agreed", absl::StatusCode::kUnavailable},
    {"worker.operation.done"},
    // A worker leaves a world.
    {"worker.leave.aborted"},
    {"worker.leave.engine_ended"},
    {"worker.leave.left"},
    {"worker.finish.untold", absl::StatusCode::kDeadlineExceeded},
    {"worker.finish.told"},
    // The arena of commits.
    {"worker.arena.begun", absl::StatusCode::kResourceExhausted},
    {"worker.arena.written"},
    {"worker.arena.described"},
    {"worker.arena.sealed"},
    {"worker.kept.fetched", absl::StatusCode::kUnavailable},
    {"worker.kept.copied", absl::StatusCode::kAborted},
    // The steps of a commit: python/horovod/elastic/commit_protocol.py.
    {"worker.commit.begun"},
    {"worker.commit.staged"},
    {"worker.commit.agreed"},
    {"worker.commit.sealed"},
    {"worker.commit.published"},
    {"worker.commit.interrupts"},
    // A run of a script: python/horovod/elastic/loop.py.
    {"worker.run.inherits"},
    {"worker.run.inherited"},
    {"worker.run.adopts"},
    {"worker.run.adopted"},
    {"worker.run.restored"},
    {"worker.run.in_next_world"},
    {"worker.run.returned"},
    {"worker.run.agreed_to_end"},
    {"worker.sync.roll_called", absl::StatusCode::kUnavailable},
    {"worker.sync.head_sent", absl::StatusCode::kUnavailable},
    {"worker.sync.received", absl::StatusCode::kUnavailable},
    {"worker.sync.agreed", absl::StatusCode::kUnavailable},
    {"worker.sync.sealed"},
    // A checkpoint: python/horovod/elastic/checkpoint_folder.py.
    {"worker.checkpoint.created", absl::StatusCode::kInternal},
    {"worker.checkpoint.written", absl::StatusCode::kInternal},
    {"worker.checkpoint.synced", absl::StatusCode::kInternal},
    {"worker.checkpoint.confirmed", absl::StatusCode::kInternal},
    {"worker.checkpoint.renamed", absl::StatusCode::kInternal},
    {"worker.checkpoint.durable"},
    {"worker.checkpoint.noted"},
};

inline constexpr size_t kCount = std::size(kPoints);

// The number of the point of this name; kCount: there is none.
constexpr size_t Find(absl::string_view name) {
  size_t number = 0;
  while (number < kCount && kPoints[number].name != name) ++number;
  return number;
}

constexpr bool CanFail(size_t point) { return kPoints[point].error != absl::StatusCode::kOk; }

}  // namespace hvd::failpoint

#endif  // BASE_FAILPOINT_POINTS_H_
