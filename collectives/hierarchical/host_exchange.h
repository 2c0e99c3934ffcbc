// The key exchange of the ranks of one host, made of one round of the whole group's exchange.
#ifndef COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_
#define COLLECTIVES_HIERARCHICAL_HOST_EXCHANGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/key_exchange.h"

namespace hvd::collectives::hierarchical {

// The round needs all ranks of the group, so every rank must make one and call AllGather or Finish,
// even if its host does not need the exchange. Not safe for concurrent use.
class HostExchange : public KeyExchange {
 public:
  // `members` are the ranks of this host in the numbering of `whole`. `key` is the round's key in
  // `whole`.
  HostExchange(KeyExchange& whole, std::string key, std::vector<int> members)
      : whole_(whole), key_(std::move(key)), members_(std::move(members)) {}

  // Errors:
  //   - Internal: AllGather or Finish was called before.
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
