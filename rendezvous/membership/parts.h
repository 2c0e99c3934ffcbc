// The parts of a job's state.
#ifndef RENDEZVOUS_MEMBERSHIP_PARTS_H_
#define RENDEZVOUS_MEMBERSHIP_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/epochs.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/failures.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/root_cause.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/workers.h"
#include "rendezvous/policy/job_spec.h"
#include "rendezvous/policy/slot_health.h"

namespace hvd::rendezvous::membership {

// An elastic job that was asked to end: it does so when no worker is left.
struct Ending {
  std::string reason;
  int exit_code = 0;
  absl::Time deadline;  // from here on it does not wait for workers
  int writers = 0;      // workers that were started to write the newest commit
  // Rank 0 of the newest world has left in good order: it has written what its script writes.
  bool was_left_well = false;

  bool MayStartWriter() const { return !was_left_well && writers < kMostWriters; }
  static constexpr int kMostWriters = 3;

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [reason, exit_code, deadline, writers, was_left_well] = *this;
    fields("reason", reason, "exit_code", exit_code, "deadline_ns", deadline, "writers", writers,
           "was_left_well", was_left_well);
  }
};

// Consists of Hosts, Workers and Epochs, each with its invariants; the start and the end of the
// job; and the failures of an elastic job.
//
// Invariants of the whole:
// - `settle_deadline` is finite only after a failure, and a job that has ended has a verdict;
// - a parked call is in exactly one of Worker::join, Epochs::watches and Epochs::rounds; it is
//   removed in the same step that emits its answer; none is parked after the verdict;
// - a static job's worlds contain all workers, so no further world can form once a worker is gone.
//
// Not thread-safe.
struct Parts {
  Parts(policy::JobSpec job_spec, absl::Time now);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  bool elastic() const { return spec.elastic.has_value(); }
  // The number of workers that the first world needs, and the next one.
  int start_workers() const;
  int least_workers() const;
  // The end of the wait for the next world, or for the exits in a job that ends. REQUIRES: an
  // elastic job that waits (Epochs::together_since).
  absl::Time WaitEnds() const;
  // In a job that ends: see CommitPlaces::Unwritten.
  uint64_t UnwrittenCommit() const { return ending.has_value() ? commits.Unwritten() : 0; }
  const Host& HostOf(const Worker& worker) const { return hosts[worker.host]; }
  // "rank 3 on host b"
  std::string Name(const Worker& worker) const;

  // Returns the violated invariant, or an empty string if all hold.
  std::string Check() const;

  // Everything but `spec`. See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("last_time_ns", last_time, "hosts", hosts, "workers", workers, "epochs", epochs,
           "started", started, "start_patience_ns", start_patience, "start_deadline_ns",
           start_deadline, "root_cause", root_cause, "settle_deadline_ns", settle_deadline,
           "dying_deadline_ns", dying_deadline, "verdict", verdict, "grace_ns", grace,
           "finish_deadline_ns", finish_deadline, "finished", finished, "next_reconcile_ns",
           next_reconcile, "reconcile_due", reconcile_due, "counted_failures", failures.counted,
           "health", health, "last_failure", failures.last, "early_exceptions", failures.early,
           "min_workers", spec.min_workers, "max_workers", spec.max_workers, "ending", ending);
  }

  policy::JobSpec spec;  // min_workers and max_workers follow the newest LimitsChanged
  absl::Time last_time;  // of the newest event

  Hosts hosts;
  Workers workers;
  Epochs epochs;
  const Standing standing{hosts, workers, epochs};
  const CommitPlaces commits{standing};

  bool started = false;
  absl::Duration start_patience;
  absl::Time start_deadline;  // while not started

  RootCause root_cause;
  absl::Time settle_deadline =
      absl::InfiniteFuture();  // finite while failures wait for their root cause
  absl::Time dying_deadline = absl::InfinitePast();  // of the wait for the exit of a dying worker
  std::optional<Verdict> verdict;
  absl::Duration grace;  // from SIGTERM to SIGKILL, of the latest StopWorkersEffect
  absl::Time finish_deadline =
      absl::InfiniteFuture();  // finite from the verdict until all have gone
  bool finished = false;       // JobFinished was sent

  // Elastic jobs only.
  absl::Time next_reconcile = absl::InfinitePast();  // the earliest time of the next Reconcile
  bool reconcile_due = false;                        // Reconcile was throttled and must run then
  Failures failures;
  policy::SlotHealth health;
  std::optional<Ending> ending;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_PARTS_H_
