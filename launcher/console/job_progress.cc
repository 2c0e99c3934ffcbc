#include "launcher/console/job_progress.h"

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

// "worker 12 on host b", with its rank if it has one.
std::string Who(const Notice& notice) {
  std::string who = notice.rank >= 0 ? absl::StrCat("rank ", notice.rank)
                                     : absl::StrCat("worker ", notice.worker.value());
  if (!notice.host.empty()) absl::StrAppend(&who, " on host ", notice.host);
  return who;
}

std::string WithText(const std::string& what, const Notice& notice) {
  return notice.text.empty() ? what : absl::StrCat(what, ": ", notice.text);
}

}  // namespace

JobProgress::Line JobProgress::Tell(const Notice& notice, absl::Time now) {
  const bool began = worlds_ > 0;
  switch (notice.kind) {
    case Notice::Kind::kHostJoined:
      if (began) ++hosts_joined_;
      return {WithText(absl::StrCat("host ", notice.host, " joined"), notice), began};
    case Notice::Kind::kHostLost:
      ++hosts_lost_;
      return {WithText(absl::StrCat("host ", notice.host, " was lost"), notice), true};
    case Notice::Kind::kHostDraining:
      return {WithText(absl::StrCat("host ", notice.host, " is to leave"), notice), true};
    case Notice::Kind::kHostLeft:
      ++hosts_left_;
      return {WithText(absl::StrCat("host ", notice.host, " has left"), notice), true};
    case Notice::Kind::kWorkerStarted:
      return {WithText(Who(notice) + " started", notice), false};
    case Notice::Kind::kWorkerFailed:
      return Failed(notice);
    case Notice::Kind::kWorkerLeft:
      return {WithText(Who(notice) + " left", notice), false};
    case Notice::Kind::kEpochBroken:
      if (!broken_since_.has_value()) broken_since_ = now;
      return {WithText(absl::StrCat("epoch ", notice.epoch.value(), " is broken"), notice), false};
    case Notice::Kind::kEpochChanging:
      return {WithText("another world is wanted", notice), false};
    case Notice::Kind::kWorldFormed:
      return Formed(notice, now);
    case Notice::Kind::kWaiting:
      return {WithText("waiting", notice), true};
    case Notice::Kind::kSlotCooling:
      return {notice.text.empty() ? absl::StrCat("host ", notice.host, " rests after failures")
                                  : notice.text,
              true};
  }
  return {notice.text, false};
}

JobProgress::Line JobProgress::Failed(const Notice& notice) {
  ++failures_;
  ++causes_[notice.text.empty() ? "unknown" : notice.text];
  std::string line = WithText(Who(notice) + " failed", notice);
  // One that was in no world yet takes nothing from those that are.
  if (notice.rank < 0 || remaining_ == 0) return {line, true};
  --remaining_;
  if (remaining_ > 0 && remaining_ >= min_workers_) {
    absl::StrAppend(&line, "; going on with ", Count(remaining_, "worker"));
  } else {
    absl::StrAppend(&line, "; ", remaining_, " of ", size_, " workers remain");
  }
  return {line, true};
}

JobProgress::Line JobProgress::Formed(const Notice& notice, absl::Time now) {
  ++worlds_;
  size_ = notice.size;
  remaining_ = notice.size;
  if (broken_since_.has_value()) {
    const absl::Duration time = now - *std::exchange(broken_since_, std::nullopt);
    ++breaks_;
    without_world_ += time;
    longest_break_ = std::max(longest_break_, time);
  }
  return {WithText(absl::StrCat("world of ", Count(size_, "worker"), " formed (epoch ",
                                notice.epoch.value(), ")"),
                   notice),
          true};
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
  if (hosts_left_ > 0) parts.push_back(absl::StrCat(Count(hosts_left_, "host"), " left"));
  if (hosts_lost_ > 0) parts.push_back(absl::StrCat(Count(hosts_lost_, "host"), " lost"));
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
