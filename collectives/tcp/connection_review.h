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
// For the first try the dialer of their connection opens further ones, as many as it can and as
// both have room for, and tells the number.
//
// Belongs to the thread that uses the links, and to these.
class ConnectionReview {
 public:
  ConnectionReview(TcpLinks& links, const SplitRule& rule);

  // Reviews those of `peers` that are due. Each of these must make a matching call.
  // REQUIRES: this rank is linked with all of them.
  // Errors: those of links::Links::Connect, and
  //   - Internal: a peer has told an impossible number.
  absl::Status Run(const std::vector<int>& peers, absl::Duration timeout,
                   const Cancellation* cancellation);

 private:
  // What one end tells the other one.
  struct Report {
    SendPace pace;
    int64_t room = 0;  // for further connections; 0: several can't be used
  };
  // A peer whose review is due.
  struct Case {
    int peer;
    Report own, theirs;
    int64_t further = 0;  // connections that the dialer has opened
  };

  std::vector<Case> FindDue(const std::vector<int>& peers);
  int64_t RoomFor(int peer, size_t peers);
  absl::Status ExchangeReports(std::vector<Case>& cases, absl::Duration timeout);
  void Decide(const Case& reviewed);
  absl::Status OpenFurther(std::vector<Case>& cases, absl::Duration timeout,
                           const Cancellation* cancellation);
  absl::Status DialFurther(std::vector<Case>& cases, absl::Duration timeout,
                           const Cancellation* cancellation);
  absl::Status TellNumbers(std::vector<Case>& cases, absl::Duration timeout);
  absl::Status TakeFurther(const std::vector<Case>& cases, absl::Duration timeout,
                           const Cancellation* cancellation);
  void Tell(const Case& reviewed);

  TcpLinks& links_;
  const bool on_one_host_;
  std::vector<ConnectionCount> counts_;  // by rank
  std::vector<SendPace> before_;         // by rank: this rank's pace with one connection
};

}  // namespace hvd::collectives::tcp

#endif  // COLLECTIVES_TCP_CONNECTION_REVIEW_H_
