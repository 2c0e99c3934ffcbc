#include "worker_runtime/commit_store/part_copies.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace hvd::worker_runtime::commit_store {
namespace {

// A thread copies this much in 20 to 50 us: much longer than it takes to get a task, and short
// beside the whole, so that all threads end at about the same time. A multiple of the alignment.
constexpr size_t kTaskBytes = size_t{512} << 10;

}  // namespace

void PartCopies::Add(absl::string_view part) {
  static constexpr char kZeros[kPartAlignment] = {};
  // The gap is written and checksummed like data, since a commit is checked as a whole.
  const size_t gap = (kPartAlignment - end_ % kPartAlignment) % kPartAlignment;
  if (gap > 0) AddStretch({kZeros, gap});
  for (; part.size() > kTaskBytes; part.remove_prefix(kTaskBytes)) {
    AddStretch(part.substr(0, kTaskBytes));
  }
  AddStretch(part);
}

void PartCopies::AddStretch(absl::string_view data) {
  if (tasks_.empty() || tasks_.back().bytes >= kTaskBytes) {
    tasks_.push_back({stretches_.size(), stretches_.size()});
  }
  stretches_.push_back({end_, data});
  tasks_.back().last = stretches_.size();
  tasks_.back().bytes += data.size();
  end_ += data.size();
}

uint32_t PartCopies::Copy(const Task& task) const {
  uint32_t checksum = 0;
  for (size_t i = task.first; i < task.last; ++i) {
    const auto& [offset, data] = stretches_[i];
    const bool is_aligned = offset % kPartAlignment == 0;
    if (memory_ != nullptr && is_aligned) {
      checksum = CopyWithCrc32c(checksum, memory_ + offset, data);
      continue;
    }
    checksum = ExtendCrc32c(checksum, data);
    if (memory_ != nullptr) memcpy(memory_ + offset, data.data(), data.size());
  }
  return checksum;
}

uint32_t PartCopies::Run(ThreadTeam& team, int threads) {
  team.Run(threads, tasks_.size(), [this](size_t i) { tasks_[i].checksum = Copy(tasks_[i]); });
  uint32_t checksum = checksum_;
  for (const Task& task : tasks_) checksum = JoinCrc32c(checksum, task.checksum, task.bytes);
  return checksum;
}

}  // namespace hvd::worker_runtime::commit_store
