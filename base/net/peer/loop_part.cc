#include "base/net/peer/loop_part.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace hvd::net::peer {

void LoopPart::Post(std::function<void()> task) {
  state_->loop.Post([state = state_, task = std::move(task)] {
    if (!state->closed) task();
  });
}

void LoopPart::After(absl::Duration delay, std::function<void()> task) {
  state_->loop.After(delay, [state = state_, task = std::move(task)] {
    if (!state->closed) task();
  });
}

absl::Status LoopPart::Watch(int fd, uint32_t events, EventLoop::Handler handler) {
  const absl::Status watched = state_->loop.Watch(fd, events, std::move(handler));
  if (watched.ok()) state_->watched.insert(fd);
  return watched;
}

void LoopPart::Forget(int fd) {
  if (state_->watched.erase(fd) > 0) state_->loop.Forget(fd);
}

void LoopPart::Close() {
  state_->closed = true;
  for (const int fd : state_->watched) state_->loop.Forget(fd);
  state_->watched.clear();
}

void LoopPart::End() {
  absl::Notification closed;
  state_->loop.Post([this, &closed] {
    Close();
    closed.Notify();
  });
  closed.WaitForNotification();
}

}  // namespace hvd::net::peer
