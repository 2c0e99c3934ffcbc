// A small elastic job for tests of the parts of a job's state.
#ifndef RENDEZVOUS_MEMBERSHIP_TESTING_SMALL_JOB_H_
#define RENDEZVOUS_MEMBERSHIP_TESTING_SMALL_JOB_H_

#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/epochs.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/workers.h"

namespace hvd::rendezvous::membership {

// Hosts, workers and worlds that a test puts into any state. Not thread-safe.
struct SmallJob {
  using Move = lifecycle::WorkerLifecycle::Move;

  // A host with two slots, whose agent is attached and has this commit. Refers to the host until
  // the next one is added.
  Host& AddHost(const std::string& name, uint64_t commit = 0);
  // A worker that runs in the next slot of this host. Refers to it until the next one is added.
  Worker& AddWorker(int host);
  // The same, in the newest world, which begins with the first of them.
  Worker& AddMember(int host);
  // The same, ready for its first world.
  Worker& AddNewcomer(int host);
  // The worker asks for the next world.
  void Ask(Worker& worker) const;
  void BreakWorld() { epochs.broken = "a peer died"; }
  static void Drain(Host& host, absl::Time deadline);

  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  Hosts hosts;
  Workers workers;
  Epochs epochs;
  const Standing standing{hosts, workers, epochs};
};

inline Host& SmallJob::AddHost(const std::string& name, uint64_t commit) {
  Host& host = hosts.Add({name, 2});
  host.agent = Incarnation(hosts.size());
  host.commit = commit;
  host.commit_address = name + ":1";
  return host;
}

inline Worker& SmallJob::AddWorker(int host) {
  Worker worker;
  worker.id = WorkerId(++workers.last_id);
  worker.host = host;
  worker.slot = hosts[host].live;
  return workers.Add(worker, &hosts);
}

inline Worker& SmallJob::AddMember(int host) {
  epochs.current = Epoch(1);
  World world = *epochs.world;
  Worker& worker = AddWorker(host);
  worker.place.rank = static_cast<int>(world.members.size());
  worker.last_world = Epoch(1);
  worker.life.Make(Move::kEnter);
  world.members.emplace_back().worker.id = worker.id;
  epochs.world = std::make_shared<const World>(world);
  return worker;
}

inline Worker& SmallJob::AddNewcomer(int host) {
  Worker& worker = AddWorker(host);
  Ask(worker);
  return worker;
}

inline void SmallJob::Ask(Worker& worker) const {
  worker.join.emplace();
  worker.ready_since = now;
}

inline void SmallJob::Drain(Host& host, absl::Time deadline) {
  host.drain.emplace();
  host.drain->deadline = deadline;
}

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_TESTING_SMALL_JOB_H_
