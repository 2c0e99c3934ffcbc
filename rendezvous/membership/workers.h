// The workers of a job.
#ifndef RENDEZVOUS_MEMBERSHIP_WORKERS_H_
#define RENDEZVOUS_MEMBERSHIP_WORKERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "rendezvous/lifecycle/worker_lifecycle.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::membership {

struct Worker {
  WorkerId id;
  int host = 0;     // its index among the hosts
  Placement place;  // in its newest world; before its first one: as planned when it was started
  int slot = 0;     // on its host
  int64_t pid = 0;
  std::optional<Incarnation> incarnation;  // of the newest process that has called
  std::set<Incarnation> superseded;        // of the processes before it
  std::optional<JoinRequested> join;       // its parked call
  lifecycle::WorkerLifecycle life;
  Epoch last_world;       // the newest that it was in; 0: none yet
  uint64_t commit = 0;    // the newest that it can restore, as reported by it
  std::string exception;  // the error for which it fails, as reported by it
  bool caused_by_peer = false;
  absl::Time may_train_until = absl::InfinitePast();  // its host was lost, or only cut off
  absl::Time ready_since;                             // of its parked call
  absl::Time stop_at = absl::InfiniteFuture();        // if it has not gone by then
  std::vector<std::string> stderr_tail;               // the last lines that it has left

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [id, host, place, slot, pid, incarnation, superseded, join, life, last_world, commit,
           exception, caused_by_peer, may_train_until, ready_since, stop_at, stderr_tail] = *this;
    fields("id", id, "host", host, "place", place, "slot", slot, "pid", pid, "incarnation",
           incarnation, "superseded", superseded, "join", join, "life", life, "last_world",
           last_world, "commit", commit, "exception", exception, "caused_by_peer", caused_by_peer,
           "may_train_until_ns", may_train_until, "ready_since_ns", ready_since, "stop_at_ns",
           stop_at, "stderr_tail", stderr_tail);
  }
};

// In the order of their ids, which are never used twice. In a static job they are ranks + 1.
//
// Invariants:
// - `live` counts the workers that are not gone, and each host's those that are there;
// - two workers that are not gone never share a slot;
// - every worker's lifecycle has only made moves that its table has;
// - a worker that is gone has no parked call, and one with a parked call is not failing.
//
// Not thread-safe.
class Workers {
 public:
  using Slot = std::pair<int, int>;  // index of the host, slot there

  std::vector<Worker>::iterator begin() { return workers_.begin(); }
  std::vector<Worker>::iterator end() { return workers_.end(); }
  std::vector<Worker>::const_iterator begin() const { return workers_.begin(); }
  std::vector<Worker>::const_iterator end() const { return workers_.end(); }
  size_t size() const { return workers_.size(); }
  bool empty() const { return workers_.empty(); }
  Worker& operator[](size_t index) { return workers_[index]; }
  size_t IndexOf(const Worker& worker) const {
    return static_cast<size_t>(&worker - workers_.data());
  }

  // Null: there is none, or it has been forgotten.
  Worker* Find(WorkerId id);

  // REQUIRES: its id is larger than all others.
  Worker& Add(Worker worker, Hosts* hosts);
  // The worker is gone. `how` is EndWell or EndBadly; no effect if it was gone already.
  void End(Worker* worker, lifecycle::WorkerLifecycle::Move how, Hosts* hosts);
  // Forgets workers that are gone and were not in this world.
  void ForgetGone(Epoch newest);

  bool AllGone() const { return live == 0; }
  // Whether some are failing: how they end is not known yet.
  bool SomeFail() const;
  bool SomeAsk() const;
  std::set<Slot> TakenSlots() const;
  std::map<Slot, WorkerId> NewestInSlots() const;
  // Ranks of the workers for which `condition` holds.
  template <typename Condition>
  std::vector<int> RanksWhere(Condition condition) const {
    std::vector<int> ranks;
    for (const Worker& worker : workers_) {
      if (condition(worker)) ranks.push_back(worker.place.rank);
    }
    return ranks;
  }

  // Whether all have a valid host. Data read from a file may be anything.
  bool HaveHosts(const Hosts& hosts) const;
  // Empty: the invariants hold; else the violated one.
  std::string Check(const Hosts& hosts) const;

  // See rendezvous/snapshot/fields.h. All but `first_late`, which only saves time.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("workers", workers_, "live", live, "last_id", last_id);
  }

  int live = 0;           // number of workers that are not gone
  size_t first_late = 0;  // static jobs: a worker that may not have asked; all before it have
  uint64_t last_id = 0;   // elastic jobs: the newest

 private:
  std::vector<Worker> workers_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_WORKERS_H_
