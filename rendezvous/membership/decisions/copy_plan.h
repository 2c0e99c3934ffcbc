// The plan of copies of commits: which host should keep those of which other one.
#ifndef RENDEZVOUS_MEMBERSHIP_DECISIONS_COPY_PLAN_H_
#define RENDEZVOUS_MEMBERSHIP_DECISIONS_COPY_PLAN_H_

#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/workers.h"

namespace hvd::rendezvous::membership::decisions {

// While the newest commit lies on one machine only, a host of another one keeps copies of it, so
// that the loss of either costs at most the commits since the newest copy.
//
// Refers to the parts of `standing`, which must outlive it; valid until a host begins or ceases to
// stay in the job. Not thread-safe.
class CopyPlan {
 public:
  struct Copying {
    const Host* holder = nullptr;
    const Host* keeper = nullptr;  // null: nobody takes a copy
  };

  explicit CopyPlan(const Standing& standing);

  // Who should have a copy of whose commits, by urgency: a world that can't begin with the newest
  // commit, a host that leaves with a commit that only it has, a world on one machine, no world and
  // one host with the newest commit.
  Copying Wanted() const;
  // Whether the host keeps the only copies, and another one is to take over but has no copy yet.
  static bool IsNotReplacedYet(const Host& host, const Copying& wanted);
  // Whether a copy may be dropped. Not before a world with members on a second machine has
  // committed: until then those members do not have the state yet, and rank 0 may have to load it
  // from the copy. Nor while the next world is awaited, which may begin with the copy.
  bool MayDrop() const;
  // The host whose commit the next world needs, if nobody can bring it: no worker is there, and no
  // other host can take a copy, or each has tried in vain. Else null.
  const Host* HolderWithoutWorker(absl::Time now) const;
  // Whether a drained host without workers stays: it keeps the copies until another host has one;
  // or it alone has a commit and another one can take it over. If no other one is there, it waits
  // for one, unless a checkpoint has the commit.
  bool MustGiveCommit(const Host& host, absl::Time now) const;

  const CommitsElsewhere& elsewhere() const { return elsewhere_; }

 private:
  const Hosts& hosts() const { return standing_.hosts(); }
  const Workers& workers() const { return standing_.workers(); }
  const Host* LoneHolder() const;
  const Host* Keeper(const Host& holder, const std::vector<int>& machines) const;
  const Host* KeeperAmong(const Host& holder, absl::Span<const Worker* const> candidates) const;

  const Standing standing_;
  const CommitPlaces commits_;
  const CommitsElsewhere elsewhere_;
  const bool is_finishing_;
  std::vector<const Host*> possible_keepers_;
};

}  // namespace hvd::rendezvous::membership::decisions

#endif  // RENDEZVOUS_MEMBERSHIP_DECISIONS_COPY_PLAN_H_
