// An acceptor of the connections to a listening socket, on an event loop.
#ifndef BASE_NET_ACCEPTOR_H_
#define BASE_NET_ACCEPTOR_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace hvd::net {

// While no more files can be opened it leaves connections waiting; it goes on when some are closed.
// Belongs to its loop's thread; the loop must outlive it.
class Acceptor {
 public:
  // Called with each connection, which is non-blocking and closed by exec.
  using Take = std::function<void(Fd connection)>;

  Acceptor(EventLoop& loop, Fd listener, Take take)
      : loop_(loop), listener_(std::move(listener)), take_(std::move(take)) {}
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
  std::optional<EventLoop::TimerId> pause_;
};

}  // namespace hvd::net

#endif  // BASE_NET_ACCEPTOR_H_
