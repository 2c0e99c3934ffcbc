// The table of a job's workers.
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
  int host = 0;     // index in Hosts
  Placement place;  // in its newest world; before the first one, the place planned at its start
  int slot = 0;     // on its host
  int64_t pid = 0;
  std::optional<Incarnation> incarnation;  // of the newest process that has called
  std::set<Incarnation> superseded;        // earlier processes of this worker
  std::optional<JoinRequested> join;       // its parked call
  lifecycle::WorkerLifecycle life;
  Epoch last_world;       // the newest world that it was in; 0: none
  uint64_t commit = 0;    // the newest commit that it reported as restorable
  std::string exception;  // the error in its failure report
  bool caused_by_peer = false;
  // Its host is unreachable; the worker may still train until this time.
  absl::Time may_train_until = absl::InfinitePast();
  absl::Time ready_since;                       // of its parked call
  absl::Time stop_at = absl::InfiniteFuture();  // when it is stopped if it has not exited
  // The end of the wait for what a stopped or released member has left in its agent's memory.
  absl::Time ends_by = absl::InfinitePast();
  bool stopped_in_world = false;         // it had not asked for the next world when it was stopped
  std::vector<std::string> stderr_tail;  // its last lines on stderr

  // Whether it is a member of the newest world and goes on.
  bool IsSurvivor() const { return life.member() && life.running(); }
  bool WaitsForFirstWorld() const { return join.has_value() && !life.member() && life.running(); }

  template <typename Fields>
  void Keep(Fields& fields) {
    auto& [id, host, place, slot, pid, incarnation, superseded, join, life, last_world, commit,
           exception, caused_by_peer, may_train_until, ready_since, stop_at, ends_by,
           stopped_in_world, stderr_tail] = *this;
    fields("id", id, "host", host, "place", place, "slot", slot, "pid", pid, "incarnation",
           incarnation, "superseded", superseded, "join", join, "life", life, "last_world",
           last_world, "commit", commit, "exception", exception, "caused_by_peer", caused_by_peer,
           "may_train_until_ns", may_train_until, "ready_since_ns", ready_since, "stop_at_ns",
           stop_at, "ends_by_ns", ends_by, "stopped_in_world", stopped_in_world, "stderr_tail",
           stderr_tail);
  }
};

inline WorkerId StaticWorkerId(int rank) { return WorkerId(static_cast<uint64_t>(rank) + 1); }

// Ordered by id; ids are never reused. In a static job the id is the rank + 1.
//
// Invariants:
// - `live` is the number of workers that are not gone; Host::live is the same for one host;
// - two workers that are not gone never share a slot;
// - every move of a worker's lifecycle was an allowed one;
// - a worker that is gone or failing has no parked call.
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

  // Returns null if there is no such worker, or it has been removed by ForgetGone.
  const Worker* Find(WorkerId id) const;
  Worker* Find(WorkerId id) {
    return const_cast<Worker*>(static_cast<const Workers*>(this)->Find(id));
  }

  // REQUIRES: the id is larger than all others.
  Worker& Add(Worker worker, Hosts* hosts);
  // Marks the worker as gone. `how` is kEndWell or kEndBadly. No effect if it was gone already.
  void End(Worker* worker, lifecycle::WorkerLifecycle::Move how, Hosts* hosts);
  // Removes the workers that are gone and were not in this world.
  void ForgetGone(Epoch newest);

  bool AllGone() const { return live == 0; }
  // Whether any worker is failing, with its exit still to come.
  bool SomeFail() const;
  bool SomeAsk() const;
  bool SomeSurvive() const;
  // Whether some rank is in the newest world, or between two worlds: it has work to commit.
  bool SomeTrain() const;
  std::set<Slot> TakenSlots() const;
  std::map<Slot, WorkerId> NewestInSlots() const;
  // The ranks of the workers that satisfy `condition`.
  template <typename Condition>
  std::vector<int> RanksWhere(Condition condition) const {
    std::vector<int> ranks;
    for (const Worker& worker : workers_) {
      if (condition(worker)) ranks.push_back(worker.place.rank);
    }
    return ranks;
  }

  // Whether every worker's host index is valid; a damaged snapshot may contain any number.
  bool HaveHosts(const Hosts& hosts) const;
  // Returns the violated invariant, or an empty string if all hold.
  std::string Check(const Hosts& hosts) const;

  // See rendezvous/snapshot/fields.h. `first_late` is a cache and not kept.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("workers", workers_, "live", live, "last_id", last_id);
  }

  int live = 0;           // number of workers that are not gone
  size_t first_late = 0;  // static jobs: every worker before this index has asked for a world
  uint64_t last_id = 0;   // elastic jobs: the newest id

 private:
  std::vector<Worker> workers_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_WORKERS_H_
