#include "launcher/job/rank_filter.h"

#include <algorithm>

namespace hvd::launcher::job {

bool RankFilter::Includes(int rank) const {
  return std::any_of(shown_.begin(), shown_.end(), [rank](const auto& range) {
    return range.first <= rank && rank <= range.second;
  });
}

bool RankFilter::Shows(uint64_t worker, int start_rank) const {
  if (shown_.empty()) return true;
  absl::MutexLock lock(&mutex_);
  switch (rule_) {
    case Rule::kStartRank:
      return Includes(start_rank);
    case Rule::kAll:
      return true;
    case Rule::kWorld: {
      const auto found = ranks_.find(worker);
      return found != ranks_.end() && Includes(found->second);
    }
  }
  return true;
}

void RankFilter::AwaitRanks() {
  absl::MutexLock lock(&mutex_);
  rule_ = Rule::kAll;
}

void RankFilter::SetRanks(std::map<uint64_t, int> ranks) {
  absl::MutexLock lock(&mutex_);
  rule_ = Rule::kWorld;
  ranks_ = std::move(ranks);
}

}  // namespace hvd::launcher::job
