#include "worker_runtime/api/training_progress.h"

#include <utility>

#include "absl/time/time.h"
#include "base/os/boot_time.h"

namespace hvd::worker_runtime::api {
namespace {

constexpr int64_t kNanosecondsInMs = 1000000;

// The clock that also runs while the host is suspended: lost time includes that.
int64_t NanosecondsSinceBoot() { return absl::ToInt64Nanoseconds(os::ReadBootTime().since_boot); }

}  // namespace

void TrainingProgress::Reset() {
  commit_ = 0;
  worked_ = false;
  steps_ = 0;
  steps_since_ = 0;
  absl::MutexLock lock(&mutex_);
  error_.clear();
  caused_by_peer_ = false;
  unreached_.reset();
}

void TrainingProgress::BeginTraining() {
  worked_.store(false);
  steps_.store(0);
  steps_since_.store(NanosecondsSinceBoot());
}

void TrainingProgress::SetCommit(uint64_t number) {
  commit_.store(number);
  // 0: there is no commit any more. The steps so far would be lost as well, so the counts go on.
  if (number == 0) return;
  // A failure from now on loses nothing that came before.
  steps_.store(0);
  steps_since_.store(NanosecondsSinceBoot());
}

void TrainingProgress::NoteError(const std::string& text, bool caused_by_peer) {
  absl::MutexLock lock(&mutex_);
  error_ = text;
  caused_by_peer_ = caused_by_peer;
}

void TrainingProgress::NoteUnreached(std::optional<int> rank) {
  absl::MutexLock lock(&mutex_);
  unreached_ = rank;
}

pb::JoinWorldRequest TrainingProgress::TakeWord() {
  pb::JoinWorldRequest request;
  request.set_commit(commit_.load());
  // Each value is taken at most once, so that an attempt to join that is repeated does not report
  // the same loss twice.
  request.set_worked(worked_.exchange(false));
  request.set_lost_steps(steps_.exchange(0));
  const int64_t since = steps_since_.exchange(0);
  if (since > 0) request.set_lost_time_ms((NanosecondsSinceBoot() - since) / kNanosecondsInMs);
  absl::MutexLock lock(&mutex_);
  request.set_left_for(std::exchange(error_, ""));
  request.set_caused_by_peer(std::exchange(caused_by_peer_, false));
  if (unreached_.has_value()) request.set_unreached(*unreached_);
  unreached_.reset();
  return request;
}

}  // namespace hvd::worker_runtime::api
