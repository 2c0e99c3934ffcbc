#include "rendezvous/membership/parked_watches.h"

#include <algorithm>

namespace hvd::rendezvous::membership {

std::optional<WatchRequested> ParkedWatches::Add(const WatchRequested& watch) {
  const WorkerId worker = watch.worker.id;
  by_call_[watch.call] = watch;
  by_worker_.emplace(worker, watch.call);
  const auto oldest = by_worker_.lower_bound({worker, CallId(0)});
  size_t count = 0;
  for (auto next = oldest; next != by_worker_.end() && next->first == worker; ++next) ++count;
  return count > kMost ? Take(oldest->second) : std::nullopt;
}

std::optional<WatchRequested> ParkedWatches::Take(CallId call) {
  const auto found = by_call_.find(call);
  if (found == by_call_.end()) return std::nullopt;
  WatchRequested watch = std::move(found->second);
  by_call_.erase(found);
  by_worker_.erase({watch.worker.id, call});
  return watch;
}

std::vector<WatchRequested> ParkedWatches::TakeOf(WorkerId worker) {
  std::vector<WatchRequested> taken;
  for (auto next = by_worker_.lower_bound({worker, CallId(0)});
       next != by_worker_.end() && next->first == worker;
       next = by_worker_.lower_bound({worker, CallId(0)})) {
    taken.push_back(*Take(next->second));
  }
  return taken;
}

std::vector<WatchRequested> ParkedWatches::TakeUnaware() {
  std::vector<CallId> calls;
  for (const auto& [call, watch] : by_call_) {
    if (!watch.knows_of_change) calls.push_back(call);
  }
  std::vector<WatchRequested> taken;
  for (const CallId call : calls) taken.push_back(*Take(call));
  return taken;
}

bool ParkedWatches::SomeUnaware() const {
  return std::any_of(by_call_.begin(), by_call_.end(),
                     [](const auto& watch) { return !watch.second.knows_of_change; });
}

std::vector<WatchRequested> ParkedWatches::TakeAll() {
  std::vector<WatchRequested> taken;
  for (auto& [call, watch] : by_call_) taken.push_back(std::move(watch));
  by_call_.clear();
  by_worker_.clear();
  return taken;
}

}  // namespace hvd::rendezvous::membership
