#include "collectives/tcp/connection_review.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/net/wire.h"
#include "base/status_macros.h"
#include "collectives/peer/peer_handshake.h"
#include "collectives/tcp/tcp_links.h"

namespace hvd::collectives::tcp {
namespace {

// How long all further connections of a review may take, and which part of the operation's timeout.
// Without them the first connection goes on alone.
constexpr absl::Duration kFurtherPatience = absl::Seconds(5);
constexpr int kPartOfTime = 4;

}  // namespace

ConnectionReview::ConnectionReview(TcpLinks& links, const SplitRule& rule)
    : links_(links),
      on_one_host_(rule.always),
      counts_(links.size(), ConnectionCount(rule)),
      before_(links.size()) {}

absl::Status ConnectionReview::Run(const std::vector<int>& peers, absl::Duration timeout,
                                   const Cancellation* cancellation) {
  std::vector<Case> due = FindDue(peers);
  if (due.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(ExchangeReports(due, timeout));
  std::vector<Case> first_tries;
  for (const Case& reviewed : due) {
    Decide(reviewed);
    const bool opens = counts_[reviewed.peer].uses_several();
    if (opens && links_.ConnectionsTo(reviewed.peer) == 1) first_tries.push_back(reviewed);
  }
  RETURN_IF_ERROR(OpenFurther(first_tries, timeout, cancellation));
  for (const Case& reviewed : due) {
    links_.SplitLarge(reviewed.peer, counts_[reviewed.peer].uses_several());
    if (counts_[reviewed.peer].is_settled()) Tell(reviewed);
    before_[reviewed.peer] = reviewed.own.pace;
  }
  return absl::OkStatus();
}

std::vector<ConnectionReview::Case> ConnectionReview::FindDue(const std::vector<int>& peers) {
  std::vector<Case> due;
  for (const int peer : peers) {
    if (!on_one_host_ && !links_.mesh().IsElsewhere(peer)) continue;
    if (counts_[peer].IsReviewDue(links_.LargeBytesStarted(peer))) due.push_back({peer, {}, {}});
  }
  for (Case& reviewed : due) {
    reviewed.own = {links_.TakePace(reviewed.peer), RoomFor(reviewed.peer, due.size())};
  }
  return due;
}

int64_t ConnectionReview::RoomFor(int peer, size_t peers) {
  const size_t connections = links_.ConnectionsTo(peer);
  if (connections == 1) return links_.mesh().RoomForFurther(peers);
  return links_.IsWhole(peer) ? static_cast<int64_t>(connections) - 1 : 0;
}

absl::Status ConnectionReview::ExchangeReports(std::vector<Case>& cases, absl::Duration timeout) {
  const auto region = links_.MakeRegion(cases.data(), cases.size() * sizeof(Case));
  const auto offset = [&](const Report& report) {
    return reinterpret_cast<const char*>(&report) - reinterpret_cast<const char*>(cases.data());
  };
  for (const Case& reviewed : cases) {
    RETURN_IF_ERROR(region->Receive(reviewed.peer, offset(reviewed.theirs), sizeof(Report)));
    RETURN_IF_ERROR(region->Send(reviewed.peer, offset(reviewed.own), sizeof(Report)));
  }
  for (const Case& reviewed : cases) {
    RETURN_IF_ERROR(region->AwaitReceived(reviewed.peer, timeout));
    RETURN_IF_ERROR(region->AwaitSent(reviewed.peer, timeout));
  }
  return absl::OkStatus();
}

void ConnectionReview::Decide(const Case& reviewed) {
  ConnectionCount& count = counts_[reviewed.peer];
  if (reviewed.own.room == 0 || reviewed.theirs.room == 0) return count.StayWithOne();
  count.Review(links_.LargeBytesStarted(reviewed.peer), reviewed.own.pace, reviewed.theirs.pace);
}

// Free of deadlocks: ports answer on their own threads, so every rank opens its connections to
// lower ranks, whatever those do, before it waits for a higher one's number.
absl::Status ConnectionReview::OpenFurther(std::vector<Case>& cases, absl::Duration timeout,
                                           const Cancellation* cancellation) {
  RETURN_IF_ERROR(DialFurther(cases, timeout, cancellation));
  RETURN_IF_ERROR(TellNumbers(cases, timeout));
  RETURN_IF_ERROR(TakeFurther(cases, timeout, cancellation));
  for (const Case& opened : cases) {
    if (opened.further == 0) counts_[opened.peer].StayWithOne();
  }
  return absl::OkStatus();
}

// After the first one that fails no others are tried: they may fail as slowly.
absl::Status ConnectionReview::DialFurther(std::vector<Case>& cases, absl::Duration timeout,
                                           const Cancellation* cancellation) {
  const absl::Time deadline =
      Clock::Real().Now() + std::min(kFurtherPatience, timeout / kPartOfTime);
  bool fails = false;
  for (Case& opened : cases) {
    if (fails || opened.peer > links_.rank()) continue;
    const int most = static_cast<int>(std::min(opened.own.room, opened.theirs.room));
    std::vector<net::Wire> wires =
        links_.mesh().DialFurther(opened.peer, most, deadline, cancellation);
    opened.further = static_cast<int64_t>(wires.size());
    fails = opened.further < most;
    RETURN_IF_ERROR(links_.AddConnections(opened.peer, std::move(wires)));
  }
  return absl::OkStatus();
}

// Sends the numbers of lower peers, and receives those of higher ones.
absl::Status ConnectionReview::TellNumbers(std::vector<Case>& cases, absl::Duration timeout) {
  std::vector<int64_t> numbers;
  for (const Case& opened : cases) numbers.push_back(opened.further);
  const auto region = links_.MakeRegion(numbers.data(), numbers.size() * sizeof(int64_t));
  for (size_t i = 0; i < cases.size(); ++i) {
    const int peer = cases[i].peer;
    const size_t at = i * sizeof(int64_t);
    RETURN_IF_ERROR(peer < links_.rank() ? region->Send(peer, at, sizeof(int64_t))
                                         : region->Receive(peer, at, sizeof(int64_t)));
  }
  for (const Case& opened : cases) {
    RETURN_IF_ERROR(opened.peer < links_.rank() ? region->AwaitSent(opened.peer, timeout)
                                                : region->AwaitReceived(opened.peer, timeout));
  }
  for (size_t i = 0; i < cases.size(); ++i) cases[i].further = numbers[i];
  return absl::OkStatus();
}

absl::Status ConnectionReview::TakeFurther(const std::vector<Case>& cases, absl::Duration timeout,
                                           const Cancellation* cancellation) {
  for (const Case& opened : cases) {
    if (opened.peer < links_.rank()) continue;
    if (opened.further < 0 || opened.further > opened.own.room) {
      return absl::DataLossError(
          absl::StrCat("rank ", opened.peer, " tells of ", opened.further, " further connections"));
    }
    ASSIGN_OR_RETURN(std::vector<net::Wire> wires,
                     links_.mesh().TakeFurther(opened.peer, static_cast<int>(opened.further),
                                               Clock::Real().Now() + timeout, cancellation));
    RETURN_IF_ERROR(links_.AddConnections(opened.peer, std::move(wires)));
  }
  return absl::OkStatus();
}

void ConnectionReview::Tell(const Case& reviewed) {
  const auto& tell = links_.mesh().group().on_choice;
  if (!tell) return;
  tell(absl::StrCat("uses ", links_.ConnectionsTo(reviewed.peer), " connections to rank ",
                    reviewed.peer, " for large messages: from ", PaceText(before_[reviewed.peer]),
                    " to ", PaceText(reviewed.own.pace)));
}

}  // namespace hvd::collectives::tcp
