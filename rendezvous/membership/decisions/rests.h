// The decision which host rests because others do not reach it.
#ifndef RENDEZVOUS_MEMBERSHIP_DECISIONS_RESTS_H_
#define RENDEZVOUS_MEMBERSHIP_DECISIONS_RESTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/membership/commit_places.h"
#include "rendezvous/membership/hosts.h"
#include "rendezvous/membership/standing.h"

namespace hvd::rendezvous::membership::decisions {

// The way between two hosts may be closed although the daemon reaches both: by a firewall, a broken
// cable, a switch that drops large packets. No world with members on both can train, so one of the
// two rests while the others go on without it.
//
// Refers to the parts of `standing`, which must outlive it. Not thread-safe.
class Rests {
 public:
  Rests(const Standing& standing, int min_workers)
      : standing_(standing), commits_(standing), min_workers_(min_workers) {}

  // The host that should rest: a way to it was closed in two worlds in a row, the second of which
  // has not made `commit`, the newest one; there are enough slots without it; and its rest costs at
  // most one commit. Of the hosts at such ways that is the one at most closed ways; then one whose
  // commit others have, too; then the one with fewest workers. Null: none should.
  const Host* Next(uint64_t commit) const;
  // The hosts of the job that this one is known not to reach.
  std::vector<std::string> UnreachedBy(const Host& host) const;
  // Whether the rest of this host ends: its time is over, or there are too few slots without it, or
  // it alone has several commits by now, or all hosts that it does not reach have gone or rest
  // themselves.
  bool IsOver(const Host& host, absl::Time now) const;

 private:
  const Hosts& hosts() const { return standing_.hosts(); }
  bool HasNewClosedWay(const Host& host) const;
  bool IsFreeOfClosedWays(const Host& host, const Host* without) const;
  bool CanDoWithout(const Host& host) const;

  const Standing standing_;
  const CommitPlaces commits_;
  const int min_workers_;
};

}  // namespace hvd::rendezvous::membership::decisions

#endif  // RENDEZVOUS_MEMBERSHIP_DECISIONS_RESTS_H_
