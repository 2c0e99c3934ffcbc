// One user's part of a shared event loop: its tasks, timers and watches, which end together.
#ifndef BASE_NET_PEER_LOOP_PART_H_
#define BASE_NET_PEER_LOOP_PART_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/event_loop.h"

namespace hvd::net::peer {

// Thread-safety: Post and End may be called from any thread, End once; all other methods belong to
// the loop's thread. The loop must run until End has returned.
class LoopPart {
 public:
  explicit LoopPart(EventLoop& loop) : state_(std::make_shared<State>(loop)) {}

  // As in EventLoop, until the end.
  void Post(std::function<void()> task);
  void After(absl::Duration delay, std::function<void()> task);
  absl::Status Watch(int fd, uint32_t events, EventLoop::Handler handler);
  void Forget(int fd);

  // Ends this part: from now on none of its tasks, timers and watches is called, not even those
  // that were posted before.
  void Close();
  // Has the loop's thread call Close, and waits for that. Not for the loop's thread.
  void End();

 private:
  struct State {
    explicit State(EventLoop& shared) : loop(shared) {}
    EventLoop& loop;
    bool closed = false;
    std::set<int> watched;
  };

  // Shared with what is still in the loop after the end. All but `loop` belongs to its thread.
  const std::shared_ptr<State> state_;
};

}  // namespace hvd::net::peer

#endif  // BASE_NET_PEER_LOOP_PART_H_
