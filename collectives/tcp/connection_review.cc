#include "collectives/tcp/connection_review.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/wire.h"
#include "base/status_macros.h"
#include "collectives/peer/peer_handshake.h"
#include "collectives/tcp/tcp_links.h"

namespace hvd::collectives::tcp {
namespace {

// How long a further connection may take. Without it the first one goes on alone.
constexpr absl::Duration kFurtherPatience = absl::Seconds(5);

}  // namespace

ConnectionReview::ConnectionReview(TcpLinks& links, const SplitRule& rule)
    : links_(links),
      on_one_host_(rule.always),
      counts_(links.size(), ConnectionCount(rule)),
      before_(links.size()) {}

absl::Status ConnectionReview::Run(const std::vector<int>& peers, absl::Time deadline,
                                   const Cancellation* cancellation) {
  std::vector<int> due;
  for (const int peer : peers) {
    if (!on_one_host_ && !links_.mesh().IsElsewhere(peer)) continue;
    if (counts_[peer].IsReviewDue(links_.LargeBytesStarted(peer))) due.push_back(peer);
  }
  if (due.empty()) return absl::OkStatus();
  std::vector<SendPace> own(due.size()), theirs(due.size());
  RETURN_IF_ERROR(ExchangePaces(due, own, theirs, deadline));
  std::vector<int> first_tries;
  for (size_t i = 0; i < due.size(); ++i) {
    const int peer = due[i];
    counts_[peer].Review(links_.LargeBytesStarted(peer), own[i], theirs[i]);
    if (counts_[peer].is_settled()) Tell(peer, before_[peer], own[i]);
    before_[peer] = own[i];
    if (counts_[peer].uses_several() && links_.ConnectionsTo(peer) == 1)
      first_tries.push_back(peer);
  }
  RETURN_IF_ERROR(OpenFurther(first_tries, deadline, cancellation));
  for (const int peer : due) links_.SplitLarge(peer, counts_[peer].uses_several());
  return absl::OkStatus();
}

absl::Status ConnectionReview::ExchangePaces(const std::vector<int>& due,
                                             std::vector<SendPace>& own,
                                             std::vector<SendPace>& theirs, absl::Time deadline) {
  const auto sent = links_.MakeRegion(own.data(), own.size() * sizeof(SendPace));
  const auto received = links_.MakeRegion(theirs.data(), theirs.size() * sizeof(SendPace));
  for (size_t i = 0; i < due.size(); ++i) {
    own[i] = links_.TakePace(due[i]);
    RETURN_IF_ERROR(received->Receive(due[i], i * sizeof(SendPace), sizeof(SendPace)));
    RETURN_IF_ERROR(sent->Send(due[i], i * sizeof(SendPace), sizeof(SendPace)));
  }
  for (const int peer : due) {
    RETURN_IF_ERROR(received->AwaitReceived(peer, deadline));
    RETURN_IF_ERROR(sent->AwaitSent(peer, deadline));
  }
  return absl::OkStatus();
}

// Free of deadlocks: ports answer on their own threads, so every rank opens its connections to
// lower ranks, whatever those do, before it waits for a higher one's number.
absl::Status ConnectionReview::OpenFurther(const std::vector<int>& peers, absl::Time deadline,
                                           const Cancellation* cancellation) {
  std::vector<int64_t> numbers(peers.size(), 0);
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] > links_.rank()) continue;
    const absl::Time patience = std::min(deadline, Clock::Real().Now() + kFurtherPatience);
    std::vector<net::Wire> further =
        links_.mesh().DialFurther(peers[i], peer::kMostFurther, patience, cancellation);
    numbers[i] = static_cast<int64_t>(further.size());
    RETURN_IF_ERROR(links_.AddConnections(peers[i], std::move(further)));
  }
  RETURN_IF_ERROR(TellNumbers(peers, numbers, deadline));
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] < links_.rank()) continue;
    if (numbers[i] < 0 || numbers[i] > peer::kMostFurther) {
      return absl::InternalError(
          absl::StrCat("rank ", peers[i], " tells of ", numbers[i], " further connections"));
    }
    ASSIGN_OR_RETURN(
        std::vector<net::Wire> further,
        links_.mesh().TakeFurther(peers[i], static_cast<int>(numbers[i]), deadline, cancellation));
    RETURN_IF_ERROR(links_.AddConnections(peers[i], std::move(further)));
  }
  return absl::OkStatus();
}

// Sends the numbers of lower peers, and receives those of higher ones.
absl::Status ConnectionReview::TellNumbers(const std::vector<int>& peers,
                                           std::vector<int64_t>& numbers, absl::Time deadline) {
  const auto region = links_.MakeRegion(numbers.data(), numbers.size() * sizeof(int64_t));
  for (size_t i = 0; i < peers.size(); ++i) {
    const size_t at = i * sizeof(int64_t);
    RETURN_IF_ERROR(peers[i] < links_.rank() ? region->Send(peers[i], at, sizeof(int64_t))
                                             : region->Receive(peers[i], at, sizeof(int64_t)));
  }
  for (const int peer : peers) {
    RETURN_IF_ERROR(peer < links_.rank() ? region->AwaitSent(peer, deadline)
                                         : region->AwaitReceived(peer, deadline));
  }
  return absl::OkStatus();
}

void ConnectionReview::Tell(int peer, const SendPace& before, const SendPace& now) {
  const auto& tell = links_.mesh().group().on_choice;
  if (!tell) return;
  tell(absl::StrCat("uses ", links_.ConnectionsTo(peer), " connections to rank ", peer,
                    " for large messages: from ", PaceText(before), " to ", PaceText(now)));
}

}  // namespace hvd::collectives::tcp
