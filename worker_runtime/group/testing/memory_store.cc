#include "worker_runtime/group/testing/memory_store.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace hvd::worker_runtime::group {

absl::Status MemoryStore::Set(const std::string& key, absl::string_view value) {
  absl::MutexLock lock(&mutex_);
  values_[key] = std::string(value);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryStore::Get(const std::string& key, absl::Duration timeout) {
  const absl::Time deadline = Clock::Real().Now() + timeout;
  absl::MutexLock lock(&mutex_);
  const auto is_set = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return values_.count(key) > 0; };
  if (!Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&is_set), deadline)) {
    return absl::DeadlineExceededError(absl::StrCat("nobody has set ", key));
  }
  return values_[key];
}

}  // namespace hvd::worker_runtime::group
