// A store in this process, for ranks that are threads.
#ifndef WORKER_RUNTIME_GROUP_TESTING_MEMORY_STORE_H_
#define WORKER_RUNTIME_GROUP_TESTING_MEMORY_STORE_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker_runtime/group/store_exchange.h"

namespace hvd::worker_runtime::group {

// Thread-safe.
class MemoryStore : public Store {
 public:
  absl::Status Set(const std::string& key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override;

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::group

#endif  // WORKER_RUNTIME_GROUP_TESTING_MEMORY_STORE_H_
