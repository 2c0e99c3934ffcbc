#include "agent/copies/held_commits.h"

#include <fcntl.h>

#include "base/fd.h"

namespace hvd::agent::copies {

using worker_runtime::commit_store::ArenaView;

void HeldCommits::Add(int arena) {
  if (arena < 0 || arenas_.count(arena) > 0) return;
  Fd own(fcntl(arena, F_DUPFD_CLOEXEC, 0));
  if (own.valid()) arenas_[arena] = std::make_unique<ArenaView>(std::move(own), job_);
}

std::vector<int> HeldCommits::arenas() const {
  std::vector<int> arenas;
  for (const auto& [arena, view] : arenas_) arenas.push_back(arena);
  return arenas;
}

HeldCommits::Newest HeldCommits::newest() {
  Newest newest;
  for (const auto& [arena, view] : arenas_) {
    const auto commit = view->Newest();
    if (commit.has_value() && commit->number > newest.commit) newest = {commit->number, arena};
  }
  return newest;
}

}  // namespace hvd::agent::copies
