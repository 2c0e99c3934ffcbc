// The members of an elastic job's next world, and the decision whether it can form now.
#ifndef RENDEZVOUS_MEMBERSHIP_DECISIONS_NEXT_MEMBERS_H_
#define RENDEZVOUS_MEMBERSHIP_DECISIONS_NEXT_MEMBERS_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/epochs.h"
#include "rendezvous/membership/standing.h"
#include "rendezvous/membership/workers.h"

namespace hvd::rendezvous::membership::decisions {

// How many members the next world needs and may have.
struct MemberLimits {
  int least = 1;
  int most = 1;
  // The job ends, and one more world forms to write its newest commit: one worker is enough, and
  // those that are to leave take part.
  bool is_to_write = false;
};

// Refers to its parameters, which must outlive it. Not thread-safe.
class NextMembers {
 public:
  // The wait for workers that are still starting, when a world could form without them.
  static constexpr absl::Duration kFormPatience = absl::Seconds(10);

  NextMembers(const MemberLimits& limits, const Standing& standing, Workers* workers,
              Epochs* epochs)
      : limits_(limits),
        standing_(standing),
        commits_(standing),
        workers_(*workers),
        epochs_(*epochs) {}

  // Returns the candidates for the next world, in no particular order, if it can form now, else
  // nullopt. Waits for:
  // - every survivor, and every finished member that may ask again;
  // - the end of members that were stopped or released: only then agents say what they have left;
  // - enough workers;
  // - without survivors: kFormPatience for workers that are still starting;
  // - a commit that is newer than what the candidates can restore, while an agent has it, for
  //   kCopyPatience at most;
  // - the certain end of the old world, if it may still train (OldWorldEnds).
  // Notes in `epochs` since when there are enough.
  std::optional<std::vector<Worker*>> Choose(absl::Time now);

 private:
  // The workers that ask for the next world, and whether others are still starting.
  struct Asking {
    std::vector<Worker*> staying, leaving, newcomers;
    bool others_start = false;
  };

  // nullopt: some must be waited for.
  std::optional<Asking> WhoAsks(absl::Time now) const;
  // The leaving worker that takes part in one more world, to pass its state on, because all others
  // have an older one; null: none has to.
  Worker* LastToLeave(const Asking& asking) const;
  std::vector<Worker*> MembersOf(const Asking& asking) const;
  bool AreEnough(const std::vector<Worker*>& members, absl::Time now);
  bool AwaitsStarting(const Asking& asking, size_t members, absl::Time now) const;

  const MemberLimits limits_;
  const Standing& standing_;
  const CommitPlaces commits_;
  Workers& workers_;
  Epochs& epochs_;
};

}  // namespace hvd::rendezvous::membership::decisions

#endif  // RENDEZVOUS_MEMBERSHIP_DECISIONS_NEXT_MEMBERS_H_
