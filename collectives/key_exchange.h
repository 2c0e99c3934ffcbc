// The key exchange interface: an all-gather of small values, by which a backend connects its peers.
// The owner of the rendezvous implements it.
#ifndef COLLECTIVES_KEY_EXCHANGE_H_
#define COLLECTIVES_KEY_EXCHANGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::collectives {

// Every round is an all-gather: each member of the epoch contributes one value. Safe for concurrent
// use.
class KeyExchange {
 public:
  virtual ~KeyExchange() = default;

  // Blocks until every member has contributed its value for `key`; returns all values in rank
  // order. A key can be used once.
  // Errors:
  //   - DeadlineExceeded: a member has not contributed within `timeout`.
  //   - FailedPrecondition: the epoch is over.
  //   - Unavailable: the daemon can't be reached.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key,
                                                             absl::string_view value,
                                                             absl::Duration timeout) = 0;

  // The part of a round's result that one rank asks for.
  struct Selected {
    std::vector<std::string> values;  // of the ranks asked for, in their order
    bool all_equal = false;           // whether all ranks have given the same value
  };
  // Like AllGather, but returns the values of `ranks` only, so that the cost of a round need not be
  // quadratic in the number of ranks. Other ranks of the same round may call AllGather. The default
  // implementation calls AllGather.
  // Errors:
  //   - InvalidArgument: there is no such rank.
  //   - Others: those of AllGather.
  virtual absl::StatusOr<Selected> Gather(absl::string_view key, absl::string_view value,
                                          const std::vector<int>& ranks, absl::Duration timeout);
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_KEY_EXCHANGE_H_
