// The decision whether an elastic job continues with another world, by the limits that its users
// have set.
#ifndef RENDEZVOUS_MEMBERSHIP_DECISIONS_CONTINUATION_H_
#define RENDEZVOUS_MEMBERSHIP_DECISIONS_CONTINUATION_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/epochs.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::membership::decisions {

// Refers to its parameters, which must outlive it. Not thread-safe.
class Continuation {
 public:
  // `some_fail`: a worker has said that it fails, and its exit is still to come.
  Continuation(const policy::ElasticSpec& limits, bool some_fail, Epochs* epochs)
      : limits_(limits), some_fail_(some_fail), epochs_(*epochs) {}

  // Whether another world may form from this commit now. If not, a pause after idle worlds is not
  // over, or exits are awaited, or a limit was reached. Counts failures and idle worlds in
  // `epochs`.
  bool Decide(uint64_t commit, absl::Time now);

  // After Decide: the pause that begins, for a notice; empty: none does.
  const std::string& pause() const { return pause_; }
  // The limit that was reached; empty: none was. And whether idle worlds were the reason.
  const std::string& limit_reached() const { return limit_reached_; }
  bool is_by_idle() const { return is_by_idle_; }

 private:
  bool GoesOnAfterFailure(uint64_t commit, bool idle, absl::Time now);
  bool GoesOnAfterLostPeers(absl::Time now);
  bool IsWithinResets();
  bool RestsAfterIdle(int in_a_row, absl::Time now);

  const policy::ElasticSpec& limits_;
  const bool some_fail_;
  Epochs& epochs_;
  std::string pause_;
  std::string limit_reached_;
  bool is_by_idle_ = false;
};

}  // namespace hvd::rendezvous::membership::decisions

#endif  // RENDEZVOUS_MEMBERSHIP_DECISIONS_CONTINUATION_H_
