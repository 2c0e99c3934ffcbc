// The key exchange by which a backend connects its peers; the owner of the rendezvous implements
// it.
#ifndef COLLECTIVES_KEY_EXCHANGE_H_
#define COLLECTIVES_KEY_EXCHANGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::collectives {

// Rounds in which every member of the epoch shows all others a value. Safe for concurrent use.
class KeyExchange {
 public:
  virtual ~KeyExchange() = default;

  // Blocks until every member has given its value for `key`; returns all of them in rank order. A
  // key serves once.
  // Errors:
  //   - DeadlineExceeded: some member has not come within `timeout`.
  //   - FailedPrecondition: the epoch is over.
  //   - Unavailable: the daemon can't be reached.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key,
                                                             absl::string_view value,
                                                             absl::Duration timeout) = 0;

  // The part of a round that one rank asks for.
  struct Selected {
    std::vector<std::string> values;  // of the ranks asked for, in their order
    bool all_equal = false;           // whether all ranks have given the same value
  };
  // The same round as AllGather, in which other ranks may call that, but returns the values of
  // `ranks` only: so a round's cost need not be quadratic in the number of ranks. This default asks
  // for all values.
  // Errors:
  //   - InvalidArgument: there is no such rank.
  //   - Others: those of AllGather.
  virtual absl::StatusOr<Selected> Gather(absl::string_view key, absl::string_view value,
                                          const std::vector<int>& ranks, absl::Duration timeout);
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_KEY_EXCHANGE_H_
