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
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/exchange_rounds.h"
#include "rendezvous/membership/parked_watches.h"
#include "rendezvous/membership/workers.h"

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

// What the members of the newest world report about it when they ask for the next.
struct Leaving {
  bool any = false;  // there was such a report
  bool worked = false;
  std::string cause;  // the first error for which a member left by itself; empty: none did
  int rank = -1;      // of that member
  std::string host;
  uint64_t lost_steps = 0;  // the maximum
  absl::Duration lost_time;

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [any, worked, cause, rank, host, lost_steps, lost_time] = *this;
    fields("any", any, "worked", worked, "cause", cause, "rank", rank, "host", host, "lost_steps",
           lost_steps, "lost_time_ns", lost_time);
  }
};

// Invariants:
// - `world` is that of `current`, and is empty only in epoch 0;
// - a member, by its lifecycle, is in `world`; whoever was in it at last is there at its rank; and
//   all who are there are known;
// - a stall that can still be reported is of ranks of `world`;
// - no call watches a broken epoch, and all that watch an epoch about to change know of that;
// - there is a quorum only while the next world is awaited, and not for longer.
//
// Not thread-safe.
struct Epochs {
  // Notifies all calls that still wait for something of the newest epoch that it is over. No effect
  // if there is no epoch or it is broken already.
  void End(const std::string& reason, std::vector<Effect>* effects);
  bool whole() const { return current > Epoch(0) && !broken.has_value(); }

  // The epoch ended without any failure: the members themselves could do nothing with it. `commit`
  // is what they can restore.
  bool EndedIdle(uint64_t commit) const;
  // REQUIRES: EndedIdle, this many times in a row.
  std::string IdleText(int in_a_row) const;
  Verdict IdleVerdict() const;
  // Counts the work lost by a broken world whose successor goes on from `commit`.
  void CountLoss(uint64_t commit);
  // The next world is no longer awaited.
  void StopWaiting();

  // Whether `report` is of operations that wait for ranks of `world`.
  bool IsSound(const StallReported& report) const;
  // Whether the stall's epoch is over.
  bool IsPast(const Stall& stall) const {
    return broken.has_value() || stall.report.epoch != current;
  }

  // Empty: the invariants hold; else the violated one.
  std::string Check(const Workers& workers) const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [current, world, broken, broken_at, changing, rounds, watches, stalls, left, failed_world,
           lost_hosts, together_since, quorum_since, told_waiting, idle_until, formed_at,
           formed_commit, newest_commit, reported_commit, committed_at, lost_steps, lost_time,
           failed_starts, without_progress] = *this;
    fields("current", current, "world", world, "broken", broken, "broken_at_ns", broken_at,
           "changing", changing, "rounds", rounds, "watches", watches, "stalls", stalls, "left",
           left, "failed_world", failed_world, "lost_hosts", lost_hosts, "together_since_ns",
           together_since, "quorum_since_ns", quorum_since, "told_waiting", told_waiting,
           "idle_until_ns", idle_until, "formed_at_ns", formed_at, "formed_commit", formed_commit,
           "newest_commit", newest_commit, "reported_commit", reported_commit, "committed_at_ns",
           committed_at, "lost_steps", lost_steps, "lost_time_ns", lost_time, "failed_starts",
           failed_starts, "without_progress", without_progress);
  }

  std::string CheckWorld(const Workers& workers) const;
  std::string CheckStalls() const;

  Epoch current;                                     // 0: before the first
  WorldPtr world = std::make_shared<const World>();  // of `current`
  std::optional<std::string> broken;                 // why it can't go on
  absl::Time broken_at;                              // if it is
  std::optional<std::string> changing;               // members know that another is wanted, and why
  ExchangeRounds rounds{0};                          // of `current`
  ParkedWatches watches;
  std::vector<Stall> stalls;
  Leaving left;
  bool failed_world = false;  // a failure ended it
  bool lost_hosts = false;    // hosts were lost since it formed

  // The next one. Elastic jobs only.
  absl::Time together_since = absl::InfiniteFuture();  // finite while it is awaited
  absl::Time quorum_since = absl::InfiniteFuture();    // ... and there are enough for it
  bool told_waiting = false;                     // a notice has reported that there are too few
  absl::Time idle_until = absl::InfinitePast();  // it does not form before

  // From world to world.
  absl::Time formed_at;                            // the newest
  uint64_t formed_commit = 0;                      // the newest commit at that time
  uint64_t newest_commit = 0;                      // that ever was in a world
  uint64_t reported_commit = 0;                    // the newest that rank 0 has reported
  absl::Time committed_at = absl::InfinitePast();  // that one
  uint64_t lost_steps = 0;                         // by failures, so far
  absl::Duration lost_time;
  int failed_starts = 0;     // in a row, while there was no world
  int without_progress = 0;  // failed or idle worlds in a row that brought no commit
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EPOCHS_H_
