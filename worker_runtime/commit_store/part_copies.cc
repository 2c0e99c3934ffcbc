#include "worker_runtime/commit_store/part_copies.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace hvd::worker_runtime::commit_store {
namespace {

// A thread copies this much in 20 to 50 us: much longer than it takes to get a task, and short
// beside the whole, so that all threads end at about the same time. A multiple of the alignment.
constexpr size_t kTaskBytes = size_t{512} << 10;
constexpr size_t kSmallBytes = size_t{4} << 10;

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
  stretches_.push_back({end_, data, 0});
  tasks_.back().last = stretches_.size();
  tasks_.back().bytes += data.size();
  end_ += data.size();
}

uint32_t PartCopies::Copy(Stretch& stretch) const {
  const bool is_aligned = stretch.offset % kPartAlignment == 0;
  if (memory_ != nullptr && is_aligned) {
    return CopyWithCrc32c(0, memory_ + stretch.offset, stretch.data);
  }
  if (memory_ != nullptr) {
    memcpy(memory_ + stretch.offset, stretch.data.data(), stretch.data.size());
  }
  return Crc32c(stretch.data);
}

uint32_t PartCopies::Copy(const Task& task) {
  uint32_t checksum = 0;
  for (size_t i = task.first; i < task.last; ++i) {
    Stretch& stretch = stretches_[i];
    stretch.checksum = Copy(stretch);
    // Joining takes as long as the checksum of some KB that are in the cache by now.
    checksum = stretch.data.size() <= kSmallBytes
                   ? ExtendCrc32c(checksum, stretch.data)
                   : JoinCrc32c(checksum, stretch.checksum, stretch.data.size());
  }
  return checksum;
}

uint32_t PartCopies::Run(ThreadTeam& team, int threads) {
  team.Run(threads, tasks_.size(), [this](size_t i) { tasks_[i].checksum = Copy(tasks_[i]); });
  uint32_t checksum = checksum_;
  for (const Task& task : tasks_) checksum = JoinCrc32c(checksum, task.checksum, task.bytes);
  return checksum;
}

void PartCopies::AddTo(std::vector<CopiedStretch>& stretches) const {
  for (const Stretch& each : stretches_) {
    if (!each.data.empty()) stretches.push_back({each.offset, each.data.size(), each.checksum});
  }
}

}  // namespace hvd::worker_runtime::commit_store
