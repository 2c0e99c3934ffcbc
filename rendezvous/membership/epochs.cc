#include "rendezvous/membership/epochs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

void Epochs::End(const std::string& reason, std::vector<Effect>* effects) {
  if (!whole()) return;
  broken = reason;
  for (const WatchRequested& watch : watches.TakeAll()) {
    effects->push_back(ReplyWatch{watch.call, EpochChange::kBroken, reason});
  }
  rounds.Close(absl::FailedPreconditionError(
                   absl::StrCat("world ", current.value(), " is broken: ", reason)),
               effects);
}

bool Epochs::EndedIdle(uint64_t commit) const {
  return broken.has_value() && !failed_world && !left.worked && !left.cause.empty() &&
         commit <= formed_commit;
}

std::string Epochs::IdleText(int in_a_row) const {
  const std::string which =
      in_a_row > 1
          ? absl::StrCat(", as ", in_a_row - 1, in_a_row > 2 ? " worlds" : " world", " before it")
          : "";
  return absl::StrCat("world ", current.value(), " ended before an operation was completed in it",
                      which, ": ", phrases::RankOnHost(left.rank, left.host), ": ", left.cause);
}

Verdict Epochs::IdleVerdict() const {
  Verdict idle;
  idle.exit_code = 1;
  idle.rank = left.rank;
  idle.host = left.host;
  idle.exception = left.cause;
  idle.exit_meaning = "left its world by itself";
  idle.summary = absl::StrCat(phrases::RankOnHost(left.rank, left.host), ": ", left.cause);
  return idle;
}

void Epochs::CountLoss(uint64_t commit) {
  if (!broken.has_value()) {
    left = Leaving();
    return;
  }
  if (!left.any) {  // nobody is left to say
    const bool known = reported_commit > 0 && reported_commit <= commit;
    left.lost_time = std::max(absl::ZeroDuration(),
                              broken_at - std::max(formed_at, known ? committed_at : formed_at));
  }
  lost_steps += left.lost_steps;
  lost_time += left.lost_time;
}

void Epochs::StopWaiting() {
  together_since = quorum_since = absl::InfiniteFuture();
  told_waiting = false;
}

std::string Epochs::Check(const Workers& workers) const {
  if (world->epoch != current) return "the world is of another epoch";
  if (world->members.empty() != (current == Epoch(0))) return "an empty world";
  for (const Worker& worker : workers) {
    if (!worker.life.member()) continue;
    const auto rank = static_cast<size_t>(worker.place.rank);
    const bool is_in = worker.last_world == current && rank < world->members.size() &&
                       world->members[rank].worker.id == worker.id;
    if (!is_in) return absl::StrCat("worker ", worker.id.value(), " is no member of the world");
  }
  if (broken.has_value() && !watches.empty()) return "a broken epoch is watched";
  if (changing.has_value() && watches.SomeUnaware()) return "a watch does not know of the change";
  if (quorum_since < together_since) return "a quorum for a world that nobody awaits";
  return "";
}

}  // namespace hvd::rendezvous::membership
