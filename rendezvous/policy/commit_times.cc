#include "rendezvous/policy/commit_times.h"

#include <algorithm>
#include <iterator>

namespace hvd::rendezvous::policy {

void CommitTimes::Made(uint64_t commit, absl::Time time, bool lasts) {
  const auto [entry, is_new] = commits_.emplace(commit, Entry{time, lasts});
  // The first report was the nearest one to the commit.
  if (!is_new) entry->second.lasts = entry->second.lasts || lasts;
  if (commits_.size() > kMost) DropOne();
}

// The first entry is where training began, or the last commit that could be gone back to.
void CommitTimes::DropOne() {
  const auto second = std::next(commits_.begin());
  const auto passing =
      std::find_if(second, commits_.end(), [](const auto& entry) { return !entry.second.lasts; });
  commits_.erase(passing == commits_.end() ? second : passing);
}

absl::Time CommitTimes::TimeOf(uint64_t commit, absl::Time otherwise) const {
  const auto after = commits_.upper_bound(commit);
  return after == commits_.begin() ? otherwise : std::prev(after)->second.time;
}

void CommitTimes::GoOn(uint64_t commit, absl::Time formed) {
  const absl::Duration pause = formed - TimeOf(commit, formed);
  for (auto entry = commits_.begin(); entry != commits_.end();) {
    const bool is_given_up = entry->first > commit && entry->second.time < formed;
    if (entry->first <= commit) entry->second.time += pause;
    entry = is_given_up ? commits_.erase(entry) : std::next(entry);
  }
  Made(commit, formed, /*lasts=*/true);
}

}  // namespace hvd::rendezvous::policy
