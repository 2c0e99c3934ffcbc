// The review of how many connections this rank and a peer use.
#ifndef COLLECTIVES_TCP_CONNECTION_REVIEW_H_
#define COLLECTIVES_TCP_CONNECTION_REVIEW_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/cancellation.h"
#include "collectives/tcp/connection_count.h"

namespace hvd::collectives::tcp {

class TcpLinks;

// At the begin of an operation, when enough has passed between two ranks of different addresses,
// they tell each other the paces of their large messages. So both decide alike (ConnectionCount).
// For the first try the dialer of their connection opens further ones, as many as it can, and tells
// the number.
//
// Belongs to the thread that uses the links, and to these.
class ConnectionReview {
 public:
  ConnectionReview(TcpLinks& links, const SplitRule& rule);

  // Reviews those of `peers` that are due. Each of these must make a matching call.
  // REQUIRES: this rank is linked with all of them.
  // Errors: those of links::Links::Connect, and
  //   - Internal: a peer has told an impossible number.
  absl::Status Run(const std::vector<int>& peers, absl::Time deadline,
                   const Cancellation* cancellation);

 private:
  absl::Status ExchangePaces(const std::vector<int>& due, std::vector<SendPace>& own,
                             std::vector<SendPace>& theirs, absl::Time deadline);
  absl::Status OpenFurther(const std::vector<int>& peers, absl::Time deadline,
                           const Cancellation* cancellation);
  absl::Status TellNumbers(const std::vector<int>& peers, std::vector<int64_t>& numbers,
                           absl::Time deadline);
  void Tell(int peer, const SendPace& before, const SendPace& now);

  TcpLinks& links_;
  const bool on_one_host_;
  std::vector<ConnectionCount> counts_;  // by rank
  std::vector<SendPace> before_;         // by rank: this rank's pace with one connection
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_CONNECTION_REVIEW_H_
