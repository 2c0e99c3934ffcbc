// The standing of an elastic job's workers: who leaves, who goes on, who is to come.
#ifndef RENDEZVOUS_MEMBERSHIP_STANDING_H_
#define RENDEZVOUS_MEMBERSHIP_STANDING_H_

#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rendezvous/membership/epochs.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/workers.h"
#include "rendezvous/placement/elastic_ranks.h"

namespace hvd::rendezvous::membership {

// Questions about workers whose answers depend on their hosts and on the newest world, too.
//
// Refers to its three parts, which must outlive it. Not thread-safe.
class Standing {
 public:
  Standing(const Hosts& hosts, const Workers& workers, const Epochs& epochs)
      : hosts_(hosts), workers_(workers), epochs_(epochs) {}

  const Hosts& hosts() const { return hosts_; }
  const Workers& workers() const { return workers_; }
  const Epochs& epochs() const { return epochs_; }
  const Host& HostOf(const Worker& worker) const { return hosts_[worker.host]; }

  // Whether the worker must leave: its host drains or rests, or its slot was withdrawn.
  bool IsLeaving(const Worker& worker) const;
  // Running and not asked to leave.
  bool IsLive(const Worker& worker) const;
  bool IsReadyNewcomer(const Worker& worker) const;
  // Whether this member has finished but may ask again: after hvd.shutdown() its script may call
  // hvd.init(), or its command may run another process.
  bool MayComeAgain(const Worker& worker) const;

  // Whether some worker of the newest world continues: it is a survivor, or has asked for the next
  // world.
  bool SomeGoOn() const;
  // Whether the job is about to end: some members of the newest world have finished, and either the
  // world is not broken (the others are expected to finish too) or no worker could continue.
  bool IsFinishing() const;
  // Whether the next world is awaited: there was no world yet, the newest one is broken, or its
  // members ask for the next one. False if the job is about to finish.
  bool ComingTogether() const;
  // Whether some member of the newest world asks for the next one, and whether all do: none has
  // gone.
  bool SomeMemberAsks() const;
  bool AllMembersAsk() const;
  // The ranks of the members that the next world waits for.
  std::vector<int> LateSurvivors() const;
  // The time from which the newest world has certainly ended: the latest may_train_until of its
  // members. InfinitePast if some member is known to have left it.
  absl::Time OldWorldEnds() const;

  // Whether the programs of all these workers, which ask for the next world, start anew in it.
  static bool AllStartAnew(absl::Span<const Worker* const> workers);

  // What the placement of the workers in a world depends on.
  std::vector<placement::Candidate> ToCandidates(absl::Span<const Worker* const> workers) const;

 private:
  // Each host's machine, numbered in the order of the placement. Before the first world, those on
  // which workers were started first come first: programs may read the rank that was planned at the
  // start of their process from its environment, and no other process should have the same.
  std::vector<int> MachinesInOrder() const;
  static bool StartsAnew(const Worker& worker) {
    return worker.join.has_value() && worker.join->starts_anew;
  }

  const Hosts& hosts_;
  const Workers& workers_;
  const Epochs& epochs_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_STANDING_H_
