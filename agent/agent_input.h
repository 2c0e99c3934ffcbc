// The reader of the agent's stdin: one bootstrap message, then the end of the stream when the
// launcher is gone.
#ifndef AGENT_AGENT_INPUT_H_
#define AGENT_AGENT_INPUT_H_

#include <functional>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "base/net/frames.h"
#include "proto/agent.pb.h"

namespace hvd::agent {

// Not thread-safe: belongs to the loop's thread.
class AgentInput {
 public:
  struct Callbacks {
    std::function<void(const pb::AgentBootstrap&)> on_bootstrap;
    std::function<void()> on_end;                     // the launcher is gone; last callback
    std::function<void(absl::Status)> on_unreadable;  // the input is not a bootstrap; last callback
  };

  // `fd` is borrowed and made non-blocking.
  AgentInput(EventLoop& loop, int fd, Callbacks callbacks);
  ~AgentInput();

 private:
  void OnReadable();
  void TakeBootstrap();
  void Unreadable(absl::Status why);

  EventLoop& loop_;
  const int fd_;
  const Callbacks callbacks_;
  net::FrameDecoder decoder_{net::kMaxFrameBytes};
  bool complete_ = false;
};

}  // namespace hvd::agent

#endif  // AGENT_AGENT_INPUT_H_
