#include "rendezvous/reporting/job_tally.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/duration_text.h"

namespace hvd::rendezvous::reporting {
namespace {

std::string Count(int n, absl::string_view what) {
  return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
}

}  // namespace

std::string WorkText(uint64_t steps, absl::Duration time) {
  const std::string counted =
      steps == 0 ? "" : absl::StrCat(steps, steps == 1 ? " step" : " steps", " and ");
  return absl::StrCat(counted, text::DurationText(time), " of work");
}

// "rank 1 on host b failed: exit code 3" -> "exit code 3"
std::string JobTally::CauseOf(absl::string_view text) {
  constexpr absl::string_view kFailed = " failed: ";
  // The first one: the error that follows may contain these words as well.
  const size_t found = text.find(kFailed);
  return std::string(found == absl::string_view::npos ? text : text.substr(found + kFailed.size()));
}

void JobTally::Observe(const membership::Notice& notice, absl::Time now) {
  switch (notice.kind) {
    case membership::Notice::Kind::kHostJoined:
      if (worlds_ > 0) ++hosts_joined_;
      return;
    case membership::Notice::Kind::kHostLost:
      ++hosts_lost_;
      remaining_ = 0;  // the notice has no number of lost workers
      return;
    case membership::Notice::Kind::kHostLeft:
      ++hosts_left_;
      return;
    case membership::Notice::Kind::kDrainOverran:
      // One of hosts_left_: its kHostLeft comes as well.
      ++drains_overrun_;
      return;
    case membership::Notice::Kind::kWorkerFailed:
      return Fail(notice);
    case membership::Notice::Kind::kEpochBroken:
      // A further break before training begins again loses no more work.
      if (!std::exchange(rolled_back_, true) && !starts_anew_) ++rollbacks_;
      return Break(now);
    case membership::Notice::Kind::kWaiting:
      if (worlds_ > 0) Break(now);  // the job is without a world, because all hosts have left
      return;
    case membership::Notice::Kind::kWorldFormed:
      return Form(notice, now);
    case membership::Notice::Kind::kWorldBegan:
      rolled_back_ = false;
      return Begin(notice);
    case membership::Notice::Kind::kHostDraining:
    case membership::Notice::Kind::kWorkerStarted:
    case membership::Notice::Kind::kWorkerLeft:
    // kEpochChanging is no break: the world trains until all leave it at the same commit.
    case membership::Notice::Kind::kEpochChanging:
    case membership::Notice::Kind::kSlotCooling:
    case membership::Notice::Kind::kStalled:
    case membership::Notice::Kind::kStack:
    case membership::Notice::Kind::kRestarted:
    case membership::Notice::Kind::kHostBack:
    case membership::Notice::Kind::kWorldIdle:
    case membership::Notice::Kind::kLimitsChanged:
    case membership::Notice::Kind::kHostWaits:
    case membership::Notice::Kind::kCommitsKept:
    case membership::Notice::Kind::kCommitsNotKept:
    case membership::Notice::Kind::kCheckpointWritten:
    case membership::Notice::Kind::kCheckpointFailed:
    case membership::Notice::Kind::kJobEnding:
    case membership::Notice::Kind::kDrainCancelled:
      return;
  }
}

void JobTally::Fail(const membership::Notice& notice) {
  ++failures_;
  ++causes_[CauseOf(notice.text)];
  // A worker outside the world does not reduce the number of remaining members.
  if (notice.rank >= 0 && remaining_ > 0 && notice.epoch == epoch_) --remaining_;
}

void JobTally::Break(absl::Time now) {
  // Only the first break counts: the time without a world has begun then.
  if (!broken_since_.has_value()) broken_since_ = now;
}

void JobTally::Form(const membership::Notice& notice, absl::Time now) {
  ++worlds_;
  epoch_ = notice.epoch;
  size_ = notice.size;
  remaining_ = notice.size;
  starts_anew_ = notice.starts_anew;
  Begin(notice);
  if (!broken_since_.has_value()) return;
  // The clock of an earlier daemon may have been ahead.
  const absl::Duration time =
      std::max(absl::ZeroDuration(), now - *std::exchange(broken_since_, std::nullopt));
  ++breaks_;
  without_world_ += time;
  longest_break_ = std::max(longest_break_, time);
}

void JobTally::Begin(const membership::Notice& notice) {
  commit_ = notice.commit;
  lost_steps_ += notice.lost_steps;
  lost_time_ += notice.lost_time;
  // The report that training had begun may have been lost with rank 0.
  if (lost_time_ > absl::ZeroDuration()) rollbacks_ = std::max(rollbacks_, 1);
}

std::string JobTally::Summary() const {
  if (worlds_ == 0) return "";
  std::vector<std::string> parts = {Count(worlds_, "world")};
  if (failures_ > 0) {
    const std::string causes =
        absl::StrJoin(causes_, ", ", [](std::string* out, const auto& cause) {
          absl::StrAppend(out, cause.second, " x ", cause.first);
        });
    parts.push_back(absl::StrCat(Count(failures_, "failure"), " (", causes, ")"));
  }
  if (hosts_joined_ > 0) parts.push_back(absl::StrCat(Count(hosts_joined_, "host"), " joined"));
  if (hosts_left_ > 0) {
    const std::string late =
        drains_overrun_ > 0 ? absl::StrCat(" (", drains_overrun_, " not in good order)") : "";
    parts.push_back(absl::StrCat(Count(hosts_left_, "host"), " left", late));
  }
  if (hosts_lost_ > 0) parts.push_back(absl::StrCat(Count(hosts_lost_, "host"), " lost"));
  if (commit_ > 0) parts.push_back(absl::StrCat("the last world began with commit ", commit_));
  if (rollbacks_ > 0) {
    const std::string lost = lost_time_ > absl::ZeroDuration()
                                 ? absl::StrCat(" (", WorkText(lost_steps_, lost_time_), ")")
                                 : "";
    parts.push_back(
        absl::StrCat("work since the newest commit lost ", Count(rollbacks_, "time"), lost));
  }
  if (breaks_ > 0) {
    const auto rounded = [](absl::Duration time) { return text::DurationText(time); };
    parts.push_back(absl::StrCat(rounded(without_world_), " without a world (longest ",
                                 rounded(longest_break_), ")"));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace hvd::rendezvous::reporting
