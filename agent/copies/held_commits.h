// The commits in an agent's memory: those of its workers, by slot, and copies of another host's.
#ifndef AGENT_COPIES_HELD_COMMITS_H_
#define AGENT_COPIES_HELD_COMMITS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker_runtime/commit_store/arena_view.h"

namespace hvd::agent::copies {

// Finds the newest commit, which every worker of the host can take over, whichever slot it was made
// in. Not thread-safe.
class HeldCommits {
 public:
  explicit HeldCommits(std::string job) : job_(std::move(job)) {}

  // Adds a commit arena, a memfd. It must stay open: its descriptor's number identifies it.
  // Repeated calls have no effect.
  void Add(int arena);

  // All that were added.
  std::vector<int> arenas() const;

  struct Newest {
    uint64_t commit = 0;  // 0: there is none
    int arena = -1;       // as given to Add
  };
  Newest newest();

 private:
  const std::string job_;
  std::map<int, std::unique_ptr<worker_runtime::commit_store::ArenaView>> arenas_;
};

}  // namespace hvd::agent::copies

#endif  // AGENT_COPIES_HELD_COMMITS_H_
