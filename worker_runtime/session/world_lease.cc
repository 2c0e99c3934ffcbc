#include "worker_runtime/session/world_lease.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/signal_free_thread.h"

namespace hvd::worker_runtime::session {
namespace {

// A longer increase of the time asleep means that the machine was suspended. Shorter ones are
// measurement errors, since the two clocks are read one after the other.
constexpr absl::Duration kLeastSleep = absl::Milliseconds(100);
constexpr absl::Duration kAnswerTime = absl::Seconds(5);

}  // namespace

WorldLease::WorldLease(Report report, std::function<void()> cancel, absl::Duration tolerance,
                       std::function<os::BootTime()> now, absl::Duration pause)
    : report_(std::move(report)),
      cancel_(std::move(cancel)),
      tolerance_(tolerance),
      now_(std::move(now)),
      pause_(pause),
      confirmed_(now_()),
      thread_(StartSignalFreeThread([this] { Run(); })) {}

WorldLease::~WorldLease() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  // Without the lock: the call that this ends takes it when it returns.
  cancel_();
  thread_.join();
}

bool WorldLease::Holds() const {
  const os::BootTime now = now_();
  return now.since_boot - confirmed_.since_boot <= tolerance_ &&
         now.asleep - confirmed_.asleep < kLeastSleep;
}

absl::Status WorldLease::Check() {
  {
    absl::MutexLock lock(&mutex_);
    if (Holds()) return absl::OkStatus();
  }
  return Ask(tolerance_);
}

absl::Status WorldLease::Confirm() { return Ask(std::min(tolerance_, kAnswerTime)); }

absl::Status WorldLease::Ask(absl::Duration timeout) {
  // The lease starts when the request was sent: the daemon may have formed another world as soon as
  // it had answered.
  const os::BootTime asked = now_();
  const absl::Status told = report_(timeout);
  absl::MutexLock lock(&mutex_);
  if (told.ok()) {
    confirmed_ = asked;
    return told;
  }
  if (absl::IsFailedPrecondition(told) || absl::IsNotFound(told)) {
    return absl::AbortedError(absl::StrCat("this world was given up by the job: ", told.message()));
  }
  if (Holds()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "the daemon has not confirmed that this world is still the job's newest: ", told.message()));
}

void WorldLease::ReportSoon() {
  absl::MutexLock lock(&mutex_);
  hurries_ = true;
}

void WorldLease::Run() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(this, &WorldLease::MustAct),
                                    Clock::Real().Now() + pause_);
    if (ended_) return;
    hurries_ = false;
    mutex_.Unlock();
    Confirm().IgnoreError();  // if the world is over, EpochWatch reports it
    mutex_.Lock();
  }
}

}  // namespace hvd::worker_runtime::session
