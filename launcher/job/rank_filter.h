// The choice of the workers whose output the terminal shows (--ranks-filter).
#ifndef LAUNCHER_JOB_RANK_FILTER_H_
#define LAUNCHER_JOB_RANK_FILTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "launcher/plan/plan.h"

namespace hvd::launcher::job {

// In a static job a worker's rank is the one with which it started. In an elastic job that one
// counts until the first world; then the rank in the newest world, and a worker outside of it is
// not shown. Thread-safe.
class RankFilter {
 public:
  explicit RankFilter(plan::RankRanges shown) : shown_(std::move(shown)) {}

  // Whether the output of this worker is shown.
  bool Shows(uint64_t worker, int start_rank) const;

  // A world has formed whose ranks follow with SetRanks. Until then all output is shown: a line too
  // many is better than one that is missing.
  void AwaitRanks();
  // `ranks`: by worker, of the newest world.
  void SetRanks(std::map<uint64_t, int> ranks);

 private:
  enum class Rule { kStartRank, kAll, kWorld };

  bool Includes(int rank) const;

  const plan::RankRanges shown_;
  mutable absl::Mutex mutex_;
  Rule rule_ ABSL_GUARDED_BY(mutex_) = Rule::kStartRank;
  std::map<uint64_t, int> ranks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_RANK_FILTER_H_
