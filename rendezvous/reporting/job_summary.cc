#include "rendezvous/reporting/job_summary.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::reporting {
namespace {

// The number of failures with the same cause at which the line suggests --max-failures, since more
// are likely.
constexpr int kManyTimes = 3;

std::string Ordinal(int n) {
  const bool teens = n % 100 >= 11 && n % 100 <= 13;
  const char* const ending = teens         ? "th"
                             : n % 10 == 1 ? "st"
                             : n % 10 == 2 ? "nd"
                             : n % 10 == 3 ? "rd"
                                           : "th";
  return absl::StrCat(n, ending);
}

// "; 12 steps and 3.2s of work since commit 40 lost"; empty: nothing was lost.
std::string LostText(const membership::Notice& notice) {
  if (notice.lost_time <= absl::ZeroDuration()) return "";
  return absl::StrCat("; ", WorkText(notice.lost_steps, notice.lost_time), " since ",
                      notice.commit > 0 ? absl::StrCat("commit ", notice.commit) : "the start",
                      " lost");
}

}  // namespace

JobSummary::Line JobSummary::Add(const membership::Notice& notice, absl::Time now) {
  // Read before the notice counts: the difference says whether a member of the world has failed.
  const int before = tally_.remaining();
  tally_.Observe(notice, now);
  switch (notice.kind) {
    case membership::Notice::Kind::kHostJoined:
      // At the start all hosts join, which is no news.
      return {notice.text, tally_.worlds() > 0};
    case membership::Notice::Kind::kWorkerFailed:
      return Failed(notice, before);
    case membership::Notice::Kind::kEpochBroken:
      // Its cause was told as a failure, and the outcome follows as a new world.
      return {absl::StrCat("world ", notice.epoch.value(), " is broken: ", notice.text), false};
    case membership::Notice::Kind::kEpochChanging:
      return {absl::StrCat("another world is wanted: ", notice.text), false};
    case membership::Notice::Kind::kWorldFormed:
      return {absl::StrCat(notice.text, " (world ", notice.epoch.value(), ")", LostText(notice)),
              true};
    case membership::Notice::Kind::kWorldBegan:
      // Otherwise the line about the world has said all.
      return {absl::StrCat(notice.text, LostText(notice)), notice.lost_time > absl::ZeroDuration()};
    case membership::Notice::Kind::kHostLost:
    case membership::Notice::Kind::kHostLeft:
    case membership::Notice::Kind::kDrainOverran:
    case membership::Notice::Kind::kWaiting:
    case membership::Notice::Kind::kHostDraining:
    case membership::Notice::Kind::kWorldIdle:
    case membership::Notice::Kind::kSlotCooling:
    case membership::Notice::Kind::kStalled:
    case membership::Notice::Kind::kRestarted:
    case membership::Notice::Kind::kHostBack:
    case membership::Notice::Kind::kLimitsChanged:
    case membership::Notice::Kind::kHostWaits:
    case membership::Notice::Kind::kCommitsKept:
    case membership::Notice::Kind::kCommitsNotKept:
    case membership::Notice::Kind::kJobEnding:
    case membership::Notice::Kind::kDrainCancelled:
      return {notice.text, true};
    // These come once per worker, or fill the screen.
    case membership::Notice::Kind::kWorkerStarted:
    case membership::Notice::Kind::kWorkerLeft:
    case membership::Notice::Kind::kStack:
    // The worker has said so.
    case membership::Notice::Kind::kCheckpointWritten:
    case membership::Notice::Kind::kCheckpointFailed:
      return {notice.text, false};
  }
  return {notice.text, false};
}

JobSummary::Line JobSummary::Failed(const membership::Notice& notice, int before) const {
  const std::string text = FailedText(notice);
  const int remaining = tally_.remaining();
  // Not a member any more, or the loss of its host has already set the number to 0.
  if (remaining == before) return {text, true};
  // With fewer the survivors must wait, for a replacement or until the job gives up.
  if (remaining > 0 && remaining >= min_workers_) {
    return {
        absl::StrCat(text, "; going on with ", remaining, remaining == 1 ? " worker" : " workers"),
        true};
  }
  return {absl::StrCat(text, "; ", remaining, " of ", tally_.size(), " workers remain"), true};
}

// Shortens a cause that was shown in full before.
std::string JobSummary::FailedText(const membership::Notice& notice) const {
  const std::string cause = JobTally::CauseOf(notice.text);
  const int times = tally_.failures_by(cause);
  // Short causes, such as "exit code 3", are not worth a reference.
  const bool says_much =
      !absl::StartsWith(cause, "exit code") && !absl::StartsWith(cause, "killed");
  if (times == 1 || !says_much) return notice.text;
  // What is before the cause, which ends the text: who failed.
  std::string text = absl::StrCat(notice.text.substr(0, notice.text.size() - cause.size()),
                                  "the same for the ", Ordinal(times), " time");
  if (times == kManyTimes) {
    absl::StrAppend(&text, " (", cause, "); --max-failures ", times, "/1h would end such a job");
  }
  return text;
}

}  // namespace hvd::rendezvous::reporting
