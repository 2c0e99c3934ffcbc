#include "rendezvous/membership/epochs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

bool Contains(const std::vector<Way>& ways, const std::string& host, const std::string& other) {
  return std::find(ways.begin(), ways.end(), Way(std::minmax(host, other))) != ways.end();
}

}  // namespace

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

bool Epochs::IsClosed(const std::string& host, const std::string& other) const {
  return Contains(left.closed, host, other) || Contains(closed_ways, host, other);
}

bool Epochs::IsClosedAgain(const std::string& host, const std::string& other) const {
  return Contains(left.closed, host, other) && Contains(closed_ways, host, other);
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

Loss Epochs::CountLoss(uint64_t commit, absl::Time now) {
  is_planned = current > Epoch(0) && !broken.has_value();
  has_begun = false;
  if (is_planned || starts_anew) return {};
  if (current > Epoch(0) && lost_at == absl::InfinitePast()) lost_at = broken_at;
  const bool had_commits = reported_commit > 0 || formed_commit > 0;
  const bool may_load_checkpoint = commit > 0 ? commit < checkpoint.commit : had_commits;
  if (may_load_checkpoint && lost_at != absl::InfinitePast()) return {};
  Loss loss{left.lost_steps, left.lost_time};
  // Nobody has survived who knows the work since that commit: estimate it.
  if (!left.any || commit < left.commit) loss.time = lost_at - times.TimeOf(commit, formed_at);
  if (lost_at == absl::InfinitePast()) loss = {};
  GoOnFrom(commit, now);
  return Lose(loss);
}

Loss Epochs::CountBegin(uint64_t commit) {
  if (std::exchange(has_begun, true) || is_planned) return {};
  Loss loss;
  if (lost_at != absl::InfinitePast()) {
    loss.time = lost_at - times.TimeOf(commit, formed_at);
  } else if (commit < formed_commit) {  // rank 0 could not restore the one that it had
    loss.time = formed_at - times.TimeOf(commit, formed_at);
  } else if (commit == formed_commit) {
    return {};
  }
  GoOnFrom(commit, formed_at);
  formed_commit = commit;
  return Lose(loss);
}

Loss Epochs::Lose(Loss loss) {
  loss.time = std::max(absl::ZeroDuration(), loss.time);
  lost_steps += loss.steps;
  lost_time += loss.time;
  lost_at = absl::InfinitePast();
  return loss;
}

void Epochs::GoOnFrom(uint64_t commit, absl::Time formed) {
  if (reported_commit > commit && committed_at < formed) {
    committed_at = commit > 0 ? times.TimeOf(commit, committed_at) : absl::InfinitePast();
    reported_commit = commit;
  }
  times.GoOn(commit, formed);
}

double Epochs::CommitRate() const {
  const absl::Duration time = committed_at - formed_at;
  if (reported_commit <= formed_commit || time <= absl::ZeroDuration()) return 0;
  const auto made = static_cast<double>(CommitNumber(reported_commit)) -
                    static_cast<double>(CommitNumber(formed_commit));
  return std::max(made, 0.0) / absl::ToDoubleSeconds(time);
}

void Epochs::CountTry(absl::Time now) {
  constexpr absl::Duration kLongestPause = absl::Seconds(10);
  constexpr int kMostDoublings = 4;
  next_try = now + std::min(kLongestPause, absl::Seconds(1 << std::min(tries, kMostDoublings)));
  ++tries;
}

void Epochs::BeginWith(uint64_t commit) {
  if (commit > formed_commit) tries = 0;
  formed_commit = commit;
  newest_commit = std::max(newest_commit, commit);
  failed_world = lost_hosts = false;
  failed_starts = 0;
  StopWaiting();
}

void Epochs::StopWaiting() {
  together_since = quorum_since = absl::InfiniteFuture();
  told_waiting = false;
}

bool Epochs::IsSound(const StallReported& report) const {
  const auto size = static_cast<int>(world->members.size());
  const auto is_member = [size](int rank) { return rank >= 0 && rank < size; };
  const auto sound = [&is_member](const StalledOperations& operations) {
    return !operations.missing.empty() &&
           std::all_of(operations.missing.begin(), operations.missing.end(), is_member);
  };
  return !report.waiting.empty() &&
         std::all_of(report.waiting.begin(), report.waiting.end(), sound);
}

std::string Epochs::CheckWorld(const Workers& workers) const {
  if (world->epoch != current) return "the world is of another epoch";
  if (world->members.empty() != (current == Epoch(0))) return "an empty world";
  size_t found = 0;
  for (const Worker& worker : workers) {
    const bool was_in = current > Epoch(0) && worker.last_world == current;
    const auto rank = static_cast<size_t>(worker.place.rank);
    const bool is_in =
        was_in && rank < world->members.size() && world->members[rank].worker.id == worker.id;
    if (is_in) ++found;
    if ((was_in || worker.life.member()) && !is_in) {
      return absl::StrCat("worker ", worker.id.value(), " is no member of the world");
    }
  }
  return found == world->members.size() ? "" : "the world has members that nobody knows";
}

std::string Epochs::CheckStalls() const {
  for (const Stall& stall : stalls) {
    if (stall.report.epoch > current) return "a stall of a world to come";
    if (IsPast(stall)) continue;
    if (!IsSound(stall.report)) return "a stall of ranks that are not in the world";
    for (const auto& [id, sample] : stall.samples) {
      const WorkerId sampled = id;
      const bool is_member =
          std::any_of(world->members.begin(), world->members.end(),
                      [sampled](const WorldMember& m) { return m.worker.id == sampled; });
      if (!is_member) return "a sample of a worker that is not in the world";
    }
  }
  return "";
}

absl::Time Epochs::NextStallDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Stall& stall : stalls) next = std::min(next, stall.deadline);
  return next;
}

std::string Epochs::Check(const Workers& workers) const {
  for (const std::string& wrong : {CheckWorld(workers), CheckStalls()}) {
    if (!wrong.empty()) return wrong;
  }
  if (broken.has_value() && !watches.empty()) return "a broken epoch is watched";
  if (changing.has_value() && watches.SomeUnaware()) return "a watch does not know of the change";
  if (quorum_since < together_since) return "a quorum for a world that nobody awaits";
  return "";
}

}  // namespace hvd::rendezvous::membership
