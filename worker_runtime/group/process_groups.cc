#include "worker_runtime/group/process_groups.h"

#include <utility>

namespace hvd::worker_runtime::group {
namespace {

absl::Status NoSuchGroup() {
  return absl::InvalidArgumentError("this process group was destroyed, or never made");
}

}  // namespace

int32_t ProcessGroups::Add(std::unique_ptr<ProcessGroup> group) {
  absl::MutexLock lock(&mutex_);
  groups_.emplace(next_id_, std::move(group));
  return next_id_++;
}

absl::StatusOr<std::shared_ptr<ProcessGroup>> ProcessGroups::Find(int32_t id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = groups_.find(id);
  if (found == groups_.end()) return NoSuchGroup();
  return found->second;
}

absl::Status ProcessGroups::Remove(int32_t id) {
  std::shared_ptr<ProcessGroup> removed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = groups_.find(id);
    if (found == groups_.end()) return NoSuchGroup();
    removed = std::move(found->second);
    groups_.erase(found);
  }
  // Without mutex_, because it waits for the peers. Other threads may still use the group.
  if (removed != nullptr) removed->Leave();
  return absl::OkStatus();
}

}  // namespace hvd::worker_runtime::group
