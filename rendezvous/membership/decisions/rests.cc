#include "rendezvous/membership/decisions/rests.h"

#include <algorithm>
#include <tuple>

#include "rendezvous/membership/epochs.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

// Whether it may have workers in the next world: a drained host, too, until it has gone.
bool IsInUse(const Host& host) {
  return host.agent.has_value() && !host.ended && !host.IsResting();
}

}  // namespace

const Host* Rests::Next(uint64_t commit) const {
  const Epochs& epochs = standing_.epochs();
  // Lost members are the reason why others did not reach them. A world that has made a commit had
  // all its ways open for a time.
  if (epochs.LostMember() || commit > epochs.formed_commit) return nullptr;
  // As nearly always: a large job has too many pairs of hosts to look at each.
  if (epochs.left.closed.empty() || epochs.closed_ways.empty()) return nullptr;
  const auto order = [this](const Host& host) {
    return std::make_tuple(UnreachedBy(host).size(), commits_.OthersAreAsNew(host), -host.live,
                           hosts().IndexOf(host));
  };
  const Host* next = nullptr;
  for (const Host& host : hosts()) {
    if (!host.TakesPart() || !HasNewClosedWay(host) || !CanDoWithout(host)) continue;
    if (commits_.HasSeveralAlone(host)) continue;
    if (next == nullptr || order(host) > order(*next)) next = &host;
  }
  return next;
}

std::vector<std::string> Rests::UnreachedBy(const Host& host) const {
  std::vector<std::string> unreached;
  for (const Host& other : hosts()) {
    const bool is_closed = standing_.epochs().IsClosed(host.slots.host, other.slots.host);
    const bool is_there = other.agent.has_value() && !other.ended;
    if (is_closed && is_there) unreached.push_back(other.slots.host);
  }
  return unreached;
}

bool Rests::IsOver(const Host& host, absl::Time now) const {
  return now >= host.rests_until || !CanDoWithout(host) || commits_.HasSeveralAlone(host) ||
         IsFreeOfClosedWays(host, nullptr);
}

// Whether a way to the host was closed in two worlds in a row, and the host at its other end does
// not rest.
bool Rests::HasNewClosedWay(const Host& host) const {
  const Epochs& epochs = standing_.epochs();
  return std::any_of(hosts().begin(), hosts().end(), [&](const Host& other) {
    return IsInUse(other) && epochs.IsClosedAgain(host.slots.host, other.slots.host);
  });
}

// Whether the host would reach all others that do not rest if `without`, which may be null, rested.
bool Rests::IsFreeOfClosedWays(const Host& host, const Host* without) const {
  return std::none_of(hosts().begin(), hosts().end(), [&](const Host& other) {
    if (&other == without || !IsInUse(other)) return false;
    return standing_.epochs().IsClosed(host.slots.host, other.slots.host);
  });
}

// Whether the other hosts have enough slots for a world. Those that rest because of this host would
// not rest any more.
bool Rests::CanDoWithout(const Host& host) const {
  int64_t slots = 0;
  for (const Host& other : hosts()) {
    const bool stays = other.agent.has_value() && !other.ended && !other.drain.has_value();
    if (&other == &host || !stays) continue;
    if (!other.IsResting() || IsFreeOfClosedWays(other, &host)) slots += other.slots.slots;
  }
  return slots >= min_workers_;
}

}  // namespace hvd::rendezvous::membership::decisions
