// An acceptor of connections to a listening socket, on an event loop.
#ifndef BASE_NET_ACCEPTOR_H_
#define BASE_NET_ACCEPTOR_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::net {

// When no descriptors are left, it asks the owner to close a connection (MakeRoom). If the owner
// can't, pending connections stay in the backlog and accept() is retried after a pause.
// Not thread-safe: belongs to its loop's thread; the loop must outlive it.
class Acceptor {
 public:
  // Receives each connection, which is non-blocking and close-on-exec.
  using Take = std::function<void(Fd connection)>;

  // Called when no descriptors are left. Closes a connection if possible; returns whether it did.
  using MakeRoom = std::function<bool()>;

  Acceptor(
      EventLoop& loop, Fd listener, Take take, MakeRoom make_room = [] { return false; })
      : loop_(loop),
        listener_(std::move(listener)),
        take_(std::move(take)),
        make_room_(std::move(make_room)) {}
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Errors: those of EventLoop::Watch.
  absl::Status Begin();

 private:
  void TakeNext();

  EventLoop& loop_;
  const Fd listener_;
  const Take take_;
  const MakeRoom make_room_;
  std::optional<EventLoop::TimerId> pause_;
};

}  // namespace hvd::net

#endif  // BASE_NET_ACCEPTOR_H_
