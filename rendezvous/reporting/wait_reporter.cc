#include "rendezvous/reporting/wait_reporter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::reporting {
namespace {

struct Tally {
  int finished = 0;
  std::vector<std::pair<int, std::string>> running;  // rank and host
};

Tally CountMembers(const membership::Membership::View& view) {
  Tally tally;
  for (const membership::Membership::HostView& host : view.hosts) {
    for (const membership::Membership::WorkerView& worker : host.workers) {
      // Those that have left at an earlier change of the world are not awaited.
      if (!worker.is_of_newest_world) continue;
      if (worker.state == lifecycle::WorkerState::kFinished) ++tally.finished;
      if (worker.state == lifecycle::WorkerState::kRunning)
        tally.running.emplace_back(worker.rank, host.host.host);
    }
  }
  return tally;
}

// The ranks that still run after others have finished; empty if none has finished, or none still
// runs.
std::string LastOnes(const membership::Membership::View& view) {
  const Tally tally = CountMembers(view);
  if (view.state != lifecycle::JobState::kRunning || tally.finished == 0 || tally.running.empty())
    return "";
  std::string who;
  if (tally.running.size() == 1) {
    who = absl::StrCat(phrases::RankOnHost(tally.running[0].first, tally.running[0].second),
                       " still runs");
  } else {
    // In the order of ranks: the workers come in that of their hosts.
    std::vector<int> ranks;
    for (const auto& [rank, host] : tally.running) ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end());
    who = absl::StrCat(phrases::Ranks(ranks), " still run");
  }
  return absl::StrCat(who, ", and the job waits: ", phrases::Count(tally.finished, "rank"),
                      tally.finished == 1 ? " has" : " have", " finished");
}

}  // namespace

std::string WithPatience(absl::string_view explanation, absl::Duration left) {
  if (left == absl::InfiniteDuration()) return std::string(explanation);
  // Whole seconds, at least 1: the limit may have passed a moment before it takes effect.
  const absl::Duration seconds =
      std::max(absl::Trunc(left, absl::Seconds(1)), absl::ZeroDuration());
  return absl::StrCat(explanation, "; this wait ends in ",
                      seconds > absl::ZeroDuration() ? text::DurationText(seconds) : "1s",
                      " at the latest");
}

WaitReporter::Waiting WaitReporter::Find(const membership::Membership::View& view) {
  if (view.waits_for != Wait::kNothing) return {view.waits_for, false, view.explanation};
  std::string last = LastOnes(view);
  const bool some = !last.empty();
  return {Wait::kNothing, some, std::move(last)};
}

absl::Duration WaitReporter::Patience(const Waiting& waiting) {
  switch (waiting.kind) {
    // A daemon and its agents connect within moments.
    case Wait::kHosts:
      return absl::Seconds(3);
    case Wait::kMembers:
      return absl::Seconds(5);
    case Wait::kWorkers:  // workers need some time to import their libraries
      return absl::Seconds(15);
    // Scripts may prepare their data before hvd.init().
    case Wait::kInit:
      return absl::Seconds(60);
    case Wait::kNothing:
      break;
  }
  // The last ranks often save or evaluate while the others have returned.
  return waiting.last_ones ? absl::Seconds(60) : absl::InfiniteDuration();
}

bool WaitReporter::IsDue(const Waiting& waiting, absl::Time now) const {
  if (now < since_ + Patience(waiting)) return false;
  // InfinitePast for told_ makes the first message due at once, after the patience.
  if (now >= told_ + pause_) return true;
  return waiting.text != waiting_.text && now >= told_ + kChangePause;
}

std::string WaitReporter::Check(const membership::Membership::View& view, absl::Time now) {
  Waiting found = Find(view);
  // A new wait is noticed earlier all the same: events call WakeUp.
  due_ = now + (found.text.empty() ? kIdlePollInterval : kPollInterval);
  // Another kind of wait: its patience starts now, and its first message is due after that. A
  // changed text of the same kind only shortens the pause (kChangePause).
  if (found.kind != waiting_.kind || found.last_ones != waiting_.last_ones) {
    waiting_ = found;
    since_ = now;
    told_ = absl::InfinitePast();
    pause_ = kPause;
  }
  if (!IsDue(found, now)) return "";
  // Longer each time: the user knows by now, and a log of a night should stay short.
  if (told_ != absl::InfinitePast()) pause_ = std::min(2 * pause_, kLongestPause);
  waiting_ = std::move(found);
  told_ = now;
  return WithPatience(waiting_.text, view.waits_until - now);
}

}  // namespace hvd::rendezvous::reporting
