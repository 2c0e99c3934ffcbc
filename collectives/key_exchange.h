// What a backend needs in order to meet its peers; whoever owns the rendezvous implements it.
#ifndef COLLECTIVES_KEY_EXCHANGE_H_
#define COLLECTIVES_KEY_EXCHANGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::collectives {

// One round in which every member of the epoch shows all others a value. Safe for concurrent use.
class KeyExchange {
 public:
  virtual ~KeyExchange() = default;

  // Blocks until every member has given its value for `key`; returns all of them in rank order. A
  // key serves once.
  //   DeadlineExceeded: somebody has not come within `timeout`.
  //   FailedPrecondition: the epoch is over.   Unavailable: the daemon can't be reached.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key,
                                                             absl::string_view value,
                                                             absl::Duration timeout) = 0;

  // What one rank wants to know of a round.
  struct Selected {
    std::vector<std::string> values;  // of the ranks asked for, in their order
    bool all_equal = false;           // whether all ranks have given the same value
  };
  // As AllGather, with which others may take part, but brings the values of `ranks` only; so that
  // what a round costs need not grow with the square of the ranks. This one does: it asks for all.
  //   InvalidArgument: there is no such rank.   Otherwise as AllGather.
  virtual absl::StatusOr<Selected> Gather(absl::string_view key, absl::string_view value,
                                          const std::vector<int>& ranks, absl::Duration timeout);
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_KEY_EXCHANGE_H_
