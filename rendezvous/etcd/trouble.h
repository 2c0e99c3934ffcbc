// What a user is told of calls that fail for a while. Pure.
#ifndef RENDEZVOUS_ETCD_TROUBLE_H_
#define RENDEZVOUS_ETCD_TROUBLE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hvd::rendezvous::etcd {

// One line when it has lasted for moments, others now and then, and one when it is over.
class Trouble {
 public:
  // The choice of a new leader within etcd takes about as long, and nobody needs to know of it.
  static constexpr absl::Duration kUnsaid = absl::Seconds(3);
  static constexpr absl::Duration kAgain = absl::Seconds(30);

  // `store`: its name in messages. `meanwhile`: what its absence means.
  Trouble(std::string store, std::string meanwhile)
      : store_(std::move(store)), meanwhile_(std::move(meanwhile)) {}

  // A call has failed, or succeeded. The result is a line for the user, if one is due.
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
