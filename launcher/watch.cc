#include "launcher/watch.h"

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/text/duration_text.h"
#include "launcher/control.h"

namespace hvd::launcher {
namespace {

void Pause(Clock& clock, absl::Duration time) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool never = false;
  clock.AwaitWithDeadline(mutex, absl::Condition(&never), clock.Now() + time);
}

}  // namespace

absl::Status Watch(cli::ControlOptions options, const std::string& job_realm, Clock& clock,
                   const std::function<bool(const std::string& text)>& show) {
  const std::string end = options.json ? "" : "the job has ended\n";
  absl::Time answered = absl::InfinitePast();
  while (true) {
    const absl::StatusOr<ControlAnswer> answer = Control(options, job_realm);
    const bool was_there = answered != absl::InfinitePast();
    if (answer.ok()) {
      answered = clock.Now();
      const std::string text =
          answer->is_over && !end.empty() ? absl::StrCat(answer->text, "\n", end) : answer->text;
      if (!show(text) || answer->is_over) return absl::OkStatus();
      // From now on this job, even if another one starts on this machine.
      if (options.connect.empty() && !answer->job_id.empty()) options.job = answer->job_id;
    } else if (!was_there) {
      return answer.status();
    } else if (absl::IsNotFound(answer.status())) {
      // The file of a job here ends with its horovodrun.
      if (!end.empty()) show(end);
      return absl::OkStatus();
    } else if (clock.Now() - answered >= kWatchPatience) {
      return absl::UnavailableError(
          absl::StrCat("no answer for ", text::DurationText(kWatchPatience),
                       ": the job has ended, or its daemon is away: ", answer.status().message()));
    }
    Pause(clock, *options.watch);
  }
}

}  // namespace hvd::launcher
