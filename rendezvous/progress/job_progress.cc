#include "rendezvous/progress/job_progress.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd {
namespace {

std::string Count(int n, absl::string_view what) {
  return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
}

// "rank 1 on host b failed: exit code 3" -> "exit code 3"
std::string Cause(absl::string_view text) {
  constexpr absl::string_view kFailed = " failed: ";
  const size_t found = text.find(kFailed);
  return std::string(found == absl::string_view::npos ? text : text.substr(found + kFailed.size()));
}

}  // namespace

JobProgress::Line JobProgress::Tell(const Notice& notice, absl::Time now) {
  switch (notice.kind) {
    case Notice::Kind::kHostJoined:
      if (worlds_ > 0) ++hosts_joined_;
      return {notice.text, worlds_ > 0};
    case Notice::Kind::kHostLost:
      ++hosts_lost_;
      remaining_ = 0;  // it does not say how many workers went with it
      return {notice.text, true};
    case Notice::Kind::kHostLeft:
      ++hosts_left_;
      return {notice.text, true};
    case Notice::Kind::kDrainOverran:
      ++drains_overrun_;
      return {notice.text, true};
    case Notice::Kind::kWorkerFailed:
      return Failed(notice);
    case Notice::Kind::kEpochBroken:
      // Another one before the next world costs nothing more.
      if (!std::exchange(rolled_back_, true)) ++rollbacks_;
      if (!broken_since_.has_value()) broken_since_ = now;
      return {absl::StrCat("epoch ", notice.epoch.value(), " is broken: ", notice.text), false};
    case Notice::Kind::kEpochChanging:
      return {absl::StrCat("another world is wanted: ", notice.text), false};
    case Notice::Kind::kWorldFormed:
      return Formed(notice, now);
    case Notice::Kind::kWaiting:
      if (worlds_ > 0 && !broken_since_.has_value()) broken_since_ = now;  // all hosts have left
      return {notice.text, true};
    case Notice::Kind::kHostDraining:
    case Notice::Kind::kSlotCooling:
    case Notice::Kind::kStalled:
      return {notice.text, true};
    case Notice::Kind::kWorkerStarted:
    case Notice::Kind::kWorkerLeft:
    case Notice::Kind::kStack:
      return {notice.text, false};
  }
  return {notice.text, false};
}

JobProgress::Line JobProgress::Failed(const Notice& notice) {
  ++failures_;
  ++causes_[Cause(notice.text)];
  // One that is not in the world takes nothing from those that are.
  if (notice.rank < 0 || remaining_ == 0 || notice.epoch != epoch_) return {notice.text, true};
  --remaining_;
  if (remaining_ > 0 && remaining_ >= min_workers_) {
    return {absl::StrCat(notice.text, "; going on with ", Count(remaining_, "worker")), true};
  }
  return {absl::StrCat(notice.text, "; ", remaining_, " of ", size_, " workers remain"), true};
}

JobProgress::Line JobProgress::Formed(const Notice& notice, absl::Time now) {
  ++worlds_;
  epoch_ = notice.epoch;
  size_ = notice.size;
  remaining_ = notice.size;
  rolled_back_ = false;
  if (broken_since_.has_value()) {
    const absl::Duration time = now - *std::exchange(broken_since_, std::nullopt);
    ++breaks_;
    without_world_ += time;
    longest_break_ = std::max(longest_break_, time);
  }
  return {absl::StrCat(notice.text, " (epoch ", notice.epoch.value(), ")"), true};
}

std::string JobProgress::Summary() const {
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
  if (rollbacks_ > 0) {
    parts.push_back(absl::StrCat("work since the newest commit lost ", Count(rollbacks_, "time")));
  }
  if (breaks_ > 0) {
    const auto rounded = [](absl::Duration time) {
      return absl::FormatDuration(absl::Trunc(time, absl::Milliseconds(1)));
    };
    parts.push_back(absl::StrCat(rounded(without_world_), " without a world (longest ",
                                 rounded(longest_break_), ")"));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace hvd
