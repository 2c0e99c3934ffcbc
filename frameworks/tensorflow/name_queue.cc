#include "frameworks/tensorflow/name_queue.h"

#include <utility>

namespace hvd::frameworks::tensorflow {

void NameQueue::Begin(const std::string& name, std::function<void()> start) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto [entry, is_first] = waiting_.try_emplace(name);
    if (!is_first) {
      entry->second.push_back(std::move(start));
      return;
    }
  }
  start();
}

// The name's entry stays while any operation of it is in flight or waits, so Begin() can tell.
// Functions are called without the lock, since they may call Begin() or End() themselves.
void NameQueue::End(const std::string& name) {
  std::function<void()> next;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto entry = waiting_.find(name);
    if (entry->second.empty()) {
      waiting_.erase(entry);
      return;
    }
    next = std::move(entry->second.front());
    entry->second.pop_front();
  }
  next();
}

}  // namespace hvd::frameworks::tensorflow
