// The job's waiting: reports to the user, and the end at the time limit.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/duration_text.h"
#include "launcher/job/job_run.h"

namespace hvd::launcher::job {
namespace {

constexpr int kUsageError = 2;

}  // namespace

// Called when start_timeout has passed: the job either has started by now, or fails.
void JobRun::CheckStarted() {
  const absl::Status started = elastic_.has_value() ? elastic_->Unusable() : AllStarted();
  if (!started.ok()) {
    return Fail(
        absl::StrCat("gave up after ", text::DurationText(plan_.start_timeout), " of waiting for ",
                     started.message(), "; --start-timeout gives more time"),
        kUsageError);
  }
  phase_ = Phase::kRunning;
  deadline_ = absl::InfiniteFuture();
}

absl::Status JobRun::AllStarted() {
  const std::set<std::string> attached = AttachedHosts();
  std::vector<std::string> late;
  for (const size_t i : fleet_.agents()) {
    const spawn::AgentTarget& target = fleet_.target(i);
    if (attached.count(target.host) > 0) continue;
    if (fleet_.ready(i)) {
      late.push_back(absl::StrCat(
          target.host, " (its agent runs, but has not reached this machine at ",
          absl::StrJoin(server_->addresses(), " or "), "; is there a firewall between?)"));
    } else {
      late.push_back(target.local ? absl::StrCat(target.host, " (its agent has not answered yet)")
                                  : absl::StrCat(target.host, " (no answer through ",
                                                 target.launcher->name(), " yet)"));
    }
  }
  return late.empty() ? absl::OkStatus() : absl::UnavailableError(absl::StrJoin(late, ", "));
}

void JobRun::ReportWaiting() {
  rendezvous::membership::Membership::View view = server_->Describe();
  if (view.waits_for == rendezvous::membership::Membership::Wait::kHosts) AddWhatIsKnown(view);
  const std::string line = waiting_.Check(view, clock_.Now());
  if (!line.empty()) SayLine(line);
}

// Completes the daemon's explanation, which covers only attached hosts, with what the launcher
// knows about hosts that are still connecting.
void JobRun::AddWhatIsKnown(rendezvous::membership::Membership::View& view) {
  const absl::Status started = AllStarted();
  if (elastic_.has_value()) {
    const bool all_came = started.ok() && plan_.source->is_dynamic();
    const std::string more = all_came ? absl::StrCat(plan_.source->name(), " lists no other host")
                                      : std::string(started.message());
    if (!more.empty()) absl::StrAppend(&view.explanation, "; ", more);
  } else if (!started.ok()) {
    view.explanation = absl::StrCat("waiting for ", started.message());
    view.waits_until = std::min(view.waits_until, deadline_);
  }
}

}  // namespace hvd::launcher::job
