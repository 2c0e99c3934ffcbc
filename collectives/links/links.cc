#include "collectives/links/links.h"

#include <utility>

namespace hvd::collectives::links {

absl::Status Links::status() const {
  absl::ReaderMutexLock lock(&mutex_);
  return status_;
}

void Links::Break(const absl::Status& why, int cause) {
  std::function<void(const absl::Status&)> listener;
  {
    absl::MutexLock lock(&mutex_);
    const bool first = status_.ok();
    if (!absl::IsAborted(status_)) status_ = why;
    if (!first) return;
    listener = listener_;
    is_broken_.store(true, std::memory_order_release);
  }
  broken_.Cancel(why);
  EndWaits(cause);
  if (listener != nullptr) listener(why);
}

void Links::OnBroken(std::function<void(const absl::Status&)> listener) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    listener_ = listener;
    status = status_;
  }
  if (!status.ok()) listener(status);
}

}  // namespace hvd::collectives::links
