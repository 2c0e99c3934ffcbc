// The sequence of a job's worlds: the newest one, the calls that wait for its end, and the change
// to the next.
#ifndef RENDEZVOUS_MEMBERSHIP_EPOCHS_H_
#define RENDEZVOUS_MEMBERSHIP_EPOCHS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/exchange_rounds.h"
#include "rendezvous/membership/parked_watches.h"
#include "rendezvous/membership/workers.h"
#include "rendezvous/policy/commit_times.h"

namespace hvd::rendezvous::membership {

// A stall of the newest epoch. It is reported when the missing ranks' agents have sent their
// samples.
struct Stall {
  struct Sample {
    std::string doing;
    std::vector<std::string> stack;

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [doing, stack] = *this;
      fields("doing", doing, "stack", stack);
    }
  };
  StallReported report;
  std::set<WorkerId> awaited;
  std::map<WorkerId, Sample> samples;
  absl::Time deadline;

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [report, awaited, samples, deadline] = *this;
    fields("report", report, "awaited", awaited, "samples", samples, "deadline_ns", deadline);
  }
};

// The names of two hosts, in alphabetical order.
using Way = std::pair<std::string, std::string>;

// The reports of members that left the newest world, merged: each arrives with the request for the
// next world.
struct Leaving {
  bool any = false;     // at least one member has reported
  bool worked = false;  // some member has completed an operation in it
  // The error of the first member that left because of one, which is the loss of a peer only if all
  // members report such losses; empty: none.
  std::string cause;
  int rank = -1;  // of that member
  std::string host;
  uint64_t lost_steps = 0;  // the maximum
  absl::Duration lost_time;
  bool caused_by_peer = false;  // `cause` is the loss of a peer
  uint64_t commit = 0;          // the newest that one of them can restore
  std::vector<Way> closed;      // between hosts whose members did not reach each other

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [any, worked, cause, rank, host, lost_steps, lost_time, caused_by_peer, commit, closed] =
        *this;
    fields("any", any, "worked", worked, "cause", cause, "rank", rank, "host", host, "lost_steps",
           lost_steps, "lost_time_ns", lost_time, "caused_by_peer", caused_by_peer, "commit",
           commit, "closed", closed);
  }
};

// The newest checkpoint, as rank 0 has reported it.
struct Checkpoint {
  uint64_t commit = 0;                        // 0: there is none
  absl::Time made_at = absl::InfinitePast();  // the commit; InfinitePast: unknown
  std::string place;                          // see Checkpoints; empty: the job writes none
  std::string failure;                        // why the last write failed; empty: it did not

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [commit, made_at, place, failure] = *this;
    fields("commit", commit, "made_at_ns", made_at, "place", place, "failure", failure);
  }
};

// Work that a failure has cost.
struct Loss {
  uint64_t steps = 0;
  absl::Duration time;
};

// Invariants:
// - `world` is that of `current`, and is empty only in epoch 0;
// - a worker whose lifecycle says "member" is in `world`; a worker whose last world is `current` is
//   in `world` at its rank; every member of `world` is a known worker;
// - a pending stall report names ranks of `world` only;
// - no watch is parked on a broken epoch; every watch parked on a changing epoch has already been
//   notified of the change;
// - `quorum_since` is finite only while the next world is awaited, and is not earlier than
//   `together_since`.
//
// Not thread-safe.
struct Epochs {
  // Marks the newest epoch as broken and answers all calls parked on it. No effect if there is no
  // epoch or it is broken already.
  void End(const std::string& reason, std::vector<Effect>* effects);
  bool whole() const { return current > Epoch(0) && !broken.has_value(); }

  // Whether the epoch ended because a member left with an error, without a failed worker, a
  // completed operation or a new commit. `commit` is the newest commit that its members can
  // restore.
  bool EndedIdle(uint64_t commit) const;
  // The number of idle worlds in a row, with this one: of those whose members only lost each other,
  // or of failed and idle ones. REQUIRES: EndedIdle.
  int IdleInARow() const { return 1 + (left.caused_by_peer ? peers_lost : without_progress); }
  // Whether the newest world has lost a member or a host, which then was the reason why others did
  // not reach it.
  bool LostMember() const { return failed_world || lost_hosts; }
  // Whether the way between two hosts is known to be closed, and whether it was closed in an
  // earlier world and again in the newest one.
  bool IsClosed(const std::string& host, const std::string& other) const;
  bool IsClosedAgain(const std::string& host, const std::string& other) const;
  // The message and the verdict for `in_a_row` idle worlds in succession. REQUIRES: EndedIdle.
  std::string IdleText(int in_a_row) const;
  Verdict IdleVerdict() const;
  // For a world that is about to form at `now`, whose members can restore `commit`: adds the work
  // lost in the broken world before it to the totals, and returns it. Nothing yet if rank 0 may
  // load a checkpoint: then CountBegin does. Nothing if the members of the broken world start anew
  // in each: what they have saved by themselves is unknown.
  Loss CountLoss(uint64_t commit, absl::Time now);
  // The same for a world in which training has begun with `commit`.
  Loss CountBegin(uint64_t commit);
  // The commits per second of the newest world, from its start to the newest commit that was
  // reported; 0: it has not reported one.
  double CommitRate() const;
  // Counts a worker that was started in a slot in cooldown, and sets the pause before the next one.
  void CountTry(absl::Time now);
  // For a world that is about to form, whose members can restore `commit`: the wait for it, and
  // what is counted until there is a world, are over.
  void BeginWith(uint64_t commit);
  // Clears the timers of the wait for the next world.
  void StopWaiting();

  // Whether `report` names only ranks of `world`.
  bool IsSound(const StallReported& report) const;
  // Whether the stall's epoch is over.
  bool IsPast(const Stall& stall) const {
    return broken.has_value() || stall.report.epoch != current;
  }

  absl::Time NextStallDeadline() const;

  // Returns the violated invariant, or an empty string if all hold.
  std::string Check(const Workers& workers) const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [current, world, broken, broken_at, changing, rounds, watches, stalls, left, failed_world,
           lost_hosts, together_since, quorum_since, told_waiting, idle_until, formed_at,
           formed_commit, newest_commit, reported_commit, committed_at, lost_steps, lost_time,
           failed_starts, without_progress, peers_lost, peers_lost_since, tries, next_try, times,
           lost_at, is_planned, has_begun, checkpoint, fewer_at_start, closed_ways, starts_anew] =
        *this;
    fields("current", current, "world", world, "broken", broken, "broken_at_ns", broken_at,
           "changing", changing, "rounds", rounds, "watches", watches, "stalls", stalls, "left",
           left, "failed_world", failed_world, "lost_hosts", lost_hosts, "together_since_ns",
           together_since, "quorum_since_ns", quorum_since, "told_waiting", told_waiting,
           "idle_until_ns", idle_until, "formed_at_ns", formed_at, "formed_commit", formed_commit,
           "newest_commit", newest_commit, "reported_commit", reported_commit, "committed_at_ns",
           committed_at, "lost_steps", lost_steps, "lost_time_ns", lost_time, "failed_starts",
           failed_starts, "without_progress", without_progress, "peers_lost", peers_lost,
           "peers_lost_since_ns", peers_lost_since, "tries", tries, "next_try_ns", next_try,
           "times", times, "lost_at_ns", lost_at, "is_planned", is_planned, "has_begun", has_begun,
           "checkpoint", checkpoint, "fewer_at_start", fewer_at_start, "closed_ways", closed_ways,
           "starts_anew", starts_anew);
  }

  Loss Lose(Loss loss);
  void GoOnFrom(uint64_t commit, absl::Time formed);
  std::string CheckWorld(const Workers& workers) const;
  std::string CheckStalls() const;

  Epoch current;                                     // 0: before the first
  WorldPtr world = std::make_shared<const World>();  // of `current`
  std::optional<std::string> broken;                 // why it is broken; empty: it is not
  absl::Time broken_at;                              // if it is
  std::optional<std::string> changing;  // why another world is wanted, once members were notified
  ExchangeRounds rounds{0};             // of `current`
  ParkedWatches watches;
  std::vector<Stall> stalls;
  Leaving left;
  bool failed_world = false;  // a failure ended it
  bool lost_hosts = false;    // hosts were lost since it formed

  // The next world. Elastic jobs only.
  absl::Time together_since = absl::InfiniteFuture();  // start of the wait for it
  absl::Time quorum_since = absl::InfiniteFuture();    // since when enough workers are ready
  bool told_waiting = false;                           // the notice "too few workers" was sent
  absl::Time idle_until = absl::InfinitePast();  // the earliest time for it after an idle world

  // Totals and times over all worlds of the job.
  absl::Time formed_at;                            // of the newest world
  uint64_t formed_commit = 0;                      // the newest commit at that time
  uint64_t newest_commit = 0;                      // that any world has had
  uint64_t reported_commit = 0;                    // the newest that rank 0 has reported
  absl::Time committed_at = absl::InfinitePast();  // when rank 0 made that commit
  uint64_t lost_steps = 0;                         // by failures, so far
  absl::Duration lost_time;
  int failed_starts = 0;     // in a row, while there was no world
  int without_progress = 0;  // failed or idle worlds in a row that brought no commit
  int peers_lost = 0;        // idle worlds in a row whose members only lost each other
  absl::Time peers_lost_since = absl::InfinitePast();  // the end of the first of these
  int tries = 0;  // starts in slots in cooldown since a world last brought a commit
  absl::Time next_try = absl::InfinitePast();  // the earliest time of another one
  policy::CommitTimes times;
  // When the world broke whose loss is not counted yet; InfinitePast: there is none.
  absl::Time lost_at = absl::InfinitePast();
  bool is_planned = false;  // the newest world goes on where the one before it ended
  bool has_begun = false;   // rank 0 has said with which commit training began in it
  Checkpoint checkpoint;
  // Workers that the first world does without, as their hosts were drained before it.
  int fewer_at_start = 0;
  // Those of earlier worlds, until a world with both hosts has made a commit.
  std::vector<Way> closed_ways;
  bool starts_anew = false;  // all members of the newest world start anew in each: no commits
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EPOCHS_H_
