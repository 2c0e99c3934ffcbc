// The places of an elastic job's commits: which hosts and workers have them.
#ifndef RENDEZVOUS_MEMBERSHIP_COMMIT_PLACES_H_
#define RENDEZVOUS_MEMBERSHIP_COMMIT_PLACES_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/workers.h"

namespace hvd::rendezvous::membership {

// Commits in the memory of workers and agents. A commit that an agent has belongs to its host:
// every worker there can take it over, whichever slot it was made in, and agents of other hosts can
// copy it.
//
// Refers to the parts of `standing`, which must outlive it. Not thread-safe.
class CommitPlaces {
 public:
  // The wait for a commit that only another host has: for a copy of it, or a worker there.
  static constexpr absl::Duration kCopyPatience = absl::Minutes(2);

  explicit CommitPlaces(const Standing& standing) : standing_(standing) {}

  // Whether any commit of the job is known: a world began with it, rank 0 has reported it, or an
  // agent has it. Progress is reported every few seconds only, and a world may train for long.
  bool HasAny() const;
  // The host whose agent has the newest commit of all; null if no agent has any.
  const Host* HolderOfNewest() const;
  // The newest commit with which a world can begin if this worker, or these, are in it.
  uint64_t Restorable(const Worker& worker) const;
  uint64_t Restorable(absl::Span<const Worker* const> members) const;
  // The newest commit with which the workers that ask can begin.
  uint64_t RestorableByAsking() const;
  // The workers that ask for the next world and stay in the job.
  std::vector<const Worker*> Candidates() const;

  // Whether worlds begin without the newest commit of this host, even if only it has that one: it
  // rests, which costs at most one commit.
  bool IsGivenUp(const Host& host) const { return host.IsResting() && !HasSeveralAlone(host); }
  // The host that has the newest commit above those with which a world of these members could
  // begin, without commits that are given up; else null.
  const Host* HolderAbove(absl::Span<const Worker* const> members) const;
  // The same host, as long as the world waits for its commit: until one of its agent's workers
  // asks, or another agent has taken a copy. If neither has happened within kCopyPatience, the
  // commit is out of reach.
  const Host* HolderAwaited(absl::Span<const Worker* const> members, absl::Time now) const;
  // Whether a worker that leaves, and is in no world, has a newer commit than these members could
  // begin with. It was released, or its host drains or rests; its agent says at its end what it
  // has.
  bool AwaitsLeaver(absl::Span<const Worker* const> members, absl::Time now) const;

  // The newest commit that the host's agent and workers have.
  uint64_t NewestOn(const Host& host) const;
  // Whether this host has more than one commit that no other host has which takes part.
  bool HasSeveralAlone(const Host& host) const;
  // Whether another host that takes part has this host's newest commit, or a newer one.
  bool OthersAreAsNew(const Host& host) const;
  // Whether the newest reported commit was made in the newest world, not in an earlier one.
  bool CommittedInWorld() const;
  // In a job that ends: the newest commit, if one more world forms to write it. No checkpoint has
  // it, only rank 0 of a world writes checkpoints, that of the last world has gone, and another
  // worker can restore the commit. Else 0.
  uint64_t Unwritten() const;
  // In a job that ends: the hosts whose agents alone can bring that commit, as no worker is left
  // that could write or restore it. A worker must be started on one of them.
  std::vector<const Host*> HoldersOfUnwritten() const;
  // In a job that ends: whether this host has the newest commit, and no checkpoint has it yet: the
  // agent must stay, since rank 0 may die while it writes.
  bool MayHaveToBeWritten(const Host& host) const;

 private:
  friend class CommitsElsewhere;

  const Hosts& hosts() const { return standing_.hosts(); }
  const Workers& workers() const { return standing_.workers(); }
  const Epochs& epochs() const { return standing_.epochs(); }

  // The newest commit, if rank 0 of the last world will not write it any more, and no checkpoint
  // has it; else 0.
  uint64_t LeftByWriter() const;
  bool CanRestore(uint64_t commit) const;

  const Standing standing_;
};

// Whether a host's commit would remain if the host went. What stays is looked at once, so that all
// hosts of a large job can be asked about when they leave together.
//
// Valid until a host begins or ceases to stay in the job, or the commits change. Not thread-safe.
class CommitsElsewhere {
 public:
  explicit CommitsElsewhere(const CommitPlaces& places);

  // Whether the newest commit of this host, or a newer one, would remain.
  bool Has(const Host& host) const;
  // Whether the newest commit of this drained host would be lost to a job that goes on, and a host
  // that comes later could take it over. Of several drained hosts with that commit the one with
  // most time stays.
  bool IsAlone(const Host& host) const;

 private:
  // The newest commit on a host that stays.
  struct Kept {
    const Host* host = nullptr;
    uint64_t commit = 0;
  };
  void Count(const Kept& kept);

  const CommitPlaces places_;
  Kept newest_;
  Kept next_;  // the newest one of the other hosts
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_COMMIT_PLACES_H_
