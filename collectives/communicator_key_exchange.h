// A key exchange over an existing communicator, for connecting another communicator of the same
// ranks.
#ifndef COLLECTIVES_COMMUNICATOR_KEY_EXCHANGE_H_
#define COLLECTIVES_COMMUNICATOR_KEY_EXCHANGE_H_

#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/key_exchange.h"

namespace hvd::collectives {

// Matches values by the order of the calls, not by their keys. So it is not safe for concurrent
// use, and must not be used while an operation of the communicator is running.
// Errors:
//   - Internal: a value is longer than 1 MiB.
//   - any other: as Communicator::AllGather.
class CommunicatorKeyExchange : public KeyExchange {
 public:
  // `communicator` must outlive it.
  explicit CommunicatorKeyExchange(Communicator& communicator) : communicator_(communicator) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override;

 private:
  Communicator& communicator_;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_COMMUNICATOR_KEY_EXCHANGE_H_
