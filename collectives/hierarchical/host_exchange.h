// The key exchange of the ranks of one host, made of one round of the whole group's exchange.
#ifndef COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_
#define COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/key_exchange.h"

namespace hvd::collectives::hierarchical {

// All ranks of the group take part in the round, each host for itself; so every rank makes it,
// whether its host needs it or not. Not safe for concurrent use.
class HostExchange : public KeyExchange {
 public:
  // `members` are the ranks of this host in the numbering of `whole`. `key` is the key there.
  HostExchange(KeyExchange& whole, std::string key, std::vector<int> members)
      : whole_(whole), key_(std::move(key)), members_(std::move(members)) {}

  // Errors:
  //   - Internal: the only round is over.
  //   - Others: those of KeyExchange.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

  // Takes part in the round if AllGather was not called.
  // Errors: those of KeyExchange.
  absl::Status Finish(absl::Duration timeout);

 private:
  KeyExchange& whole_;
  const std::string key_;
  const std::vector<int> members_;
  bool done_ = false;
};

}  // namespace hvd::collectives::hierarchical

#endif  // COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_
