// The registry of this process's process groups, by number.
#ifndef WORKER_RUNTIME_GROUP_PROCESS_GROUPS_H_
#define WORKER_RUNTIME_GROUP_PROCESS_GROUPS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker_runtime/group/process_group.h"

namespace hvd::worker_runtime::group {

// Thread-safe.
class ProcessGroups {
 public:
  // The numbers of groups. They are greater than those of process sets, which share the operations'
  // argument with them.
  static constexpr int32_t kFirstId = 1 << 24;
  static bool IsGroup(int32_t id) { return id >= kFirstId; }

  // Returns the group's number, which is never used again.
  int32_t Add(std::unique_ptr<ProcessGroup> group);
  // Errors:
  //   - InvalidArgument: there is no such group now.
  absl::StatusOr<std::shared_ptr<ProcessGroup>> Find(int32_t id) const;
  // Leaves the group. Operations in flight fail; their handles stay valid.
  // Errors: those of Find.
  absl::Status Remove(int32_t id);

 private:
  mutable absl::Mutex mutex_;
  int32_t next_id_ ABSL_GUARDED_BY(mutex_) = kFirstId;
  std::map<int32_t, std::shared_ptr<ProcessGroup>> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::group

#endif  // WORKER_RUNTIME_GROUP_PROCESS_GROUPS_H_
