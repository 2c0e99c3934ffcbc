// The key exchange of the ranks of one host, made of one round of the whole group's.
#ifndef COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_
#define COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/key_exchange.h"

namespace hvd::collectives::hierarchical {

// All ranks of the group take part in the round, hosts among themselves; so it is made on every
// rank, whether its host needs it or not. Not safe for concurrent use.
class HostExchange : public KeyExchange {
 public:
  // `members` are the ranks of this host, as `whole` numbers them. `key` is used there.
  HostExchange(KeyExchange& whole, std::string key, std::vector<int> members)
      : whole_(whole), key_(std::move(key)), members_(std::move(members)) {}

  //   Internal: there is one round, and it is over.   Otherwise as KeyExchange.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

  // Takes part in the round if nobody has asked for it here.
  //   As KeyExchange.
  absl::Status Finish(absl::Duration timeout);

 private:
  KeyExchange& whole_;
  const std::string key_;
  const std::vector<int> members_;
  bool done_ = false;
};

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_
