#include "rendezvous/membership/decisions/continuation.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership::decisions {
namespace {

// The pause before the next world after two idle worlds in a row; doubles with each further one.
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPause = absl::Minutes(1);

}  // namespace

bool Continuation::Decide(uint64_t commit, absl::Time now) {
  // The commits of a world that ended in a planned change count, too.
  if (commit > epochs_.formed_commit) epochs_.without_progress = 0;
  const bool idle = epochs_.EndedIdle(commit);
  const bool lost_peers = idle && epochs_.left.caused_by_peer;
  if (lost_peers && !GoesOnAfterLostPeers(now)) return false;
  if (!lost_peers && (epochs_.failed_world || idle) && !GoesOnAfterFailure(commit, idle, now))
    return false;
  if (!lost_peers) epochs_.peers_lost = 0;
  return IsWithinResets();
}

// Counts failures and idle worlds in a row that brought no commit.
bool Continuation::GoesOnAfterFailure(uint64_t commit, bool idle, absl::Time now) {
  const bool short_lived = now - epochs_.formed_at < limits_.budget.window;
  const bool got_nowhere = commit <= epochs_.formed_commit && short_lived;
  // The loss of a host is not caused by the training step, and commits that only this host had
  // are unknown, so it does not count as a failure without progress.
  const int in_a_row = !got_nowhere ? 0 : epochs_.without_progress + (epochs_.lost_hosts ? 0 : 1);
  const int limit = limits_.failures_without_progress;
  const bool too_many = limit > 0 && in_a_row >= limit;
  // Wait for their exits: the verdict contains their last output.
  if (too_many && some_fail_) return false;
  if (!too_many && idle && RestsAfterIdle(in_a_row, now)) return false;
  epochs_.without_progress = in_a_row;
  if (!too_many) return true;
  is_by_idle_ = idle;
  limit_reached_ = absl::StrCat(phrases::Count(in_a_row, idle ? "world" : "failure"), " in a row",
                                idle                  ? " without an operation that was completed"
                                : epochs_.starts_anew ? ", each soon after the start of its world"
                                                      : " without a commit in between");
  return false;
}

// Worlds whose members only lost each other are bounded by time and not by number: no worker is to
// blame, and a network that fails for a minute breaks a dozen worlds.
bool Continuation::GoesOnAfterLostPeers(absl::Time now) {
  if (epochs_.peers_lost == 0) epochs_.peers_lost_since = epochs_.broken_at;
  const absl::Duration limit = limits_.elastic_timeout;
  if (epochs_.peers_lost > 0 && now >= epochs_.peers_lost_since + limit) {
    is_by_idle_ = true;
    limit_reached_ =
        absl::StrCat(text::DurationText(limit),
                     " of worlds whose ranks lost each other before an operation was completed");
    return false;
  }
  if (RestsAfterIdle(epochs_.IdleInARow(), now)) {
    epochs_.idle_until = std::min(epochs_.idle_until, epochs_.peers_lost_since + limit);
    return false;
  }
  ++epochs_.peers_lost;
  return true;
}

bool Continuation::IsWithinResets() {
  const std::optional<int>& limit = limits_.reset_limit;
  if (!limit.has_value() || epochs_.current == Epoch(0) ||
      epochs_.current.value() <= static_cast<uint64_t>(*limit))
    return true;
  limit_reached_ =
      absl::StrCat(phrases::Count(*limit, "reset"), ", the most that the reset limit allows");
  return false;
}

// Whether the next world must wait for a pause, so that idle worlds do not follow each other in a
// busy loop.
bool Continuation::RestsAfterIdle(int in_a_row, absl::Time now) {
  if (epochs_.idle_until == absl::InfinitePast()) {
    const int doublings = std::min(in_a_row - 2, 20);
    const absl::Duration pause = doublings < 0
                                     ? absl::ZeroDuration()
                                     : std::min(kLongestPause, kFirstPause * (1 << doublings));
    epochs_.idle_until = now + pause;
    pause_ = absl::StrCat(epochs_.IdleText(in_a_row), "; the next one follows ",
                          pause > absl::ZeroDuration()
                              ? absl::StrCat("after ", text::DurationText(pause))
                              : "at once");
  }
  return now < epochs_.idle_until;
}

}  // namespace hvd::rendezvous::membership::decisions
