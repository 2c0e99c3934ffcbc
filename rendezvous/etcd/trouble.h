// The schedule of messages about an outage of etcd. Pure.
#ifndef RENDEZVOUS_ETCD_TROUBLE_H_
#define RENDEZVOUS_ETCD_TROUBLE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hvd::rendezvous::etcd {

// Yields one line when calls have failed for kUnsaid, one every kAgain after that, and one at the
// end of the outage.
class Trouble {
 public:
  // Longer than etcd usually takes to elect a new leader among its members, which needs no message.
  static constexpr absl::Duration kUnsaid = absl::Seconds(3);
  static constexpr absl::Duration kAgain = absl::Seconds(30);

  // `store` is its name in messages, `meanwhile` the effect of the outage.
  Trouble(std::string store, std::string meanwhile)
      : store_(std::move(store)), meanwhile_(std::move(meanwhile)) {}

  // Record a failed or successful call. Return a line for the user if one is due.
  std::optional<std::string> Failed(const absl::Status& why, absl::Time now);
  std::optional<std::string> Succeeded(absl::Time now);

 private:
  const std::string store_;
  const std::string meanwhile_;
  std::optional<absl::Time> since_;
  std::optional<absl::Time> said_;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_TROUBLE_H_
