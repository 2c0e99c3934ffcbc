// An agent's connection to the daemon, which is restored when the daemon was away for a short time.
#ifndef AGENT_ATTACHMENT_H_
#define AGENT_ATTACHMENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "proto/agent.pb.h"
#include "rendezvous/client/agent_link.h"
#include "rendezvous/client/back_off.h"

namespace hvd::agent {

// A sequence of streams. Belongs to the loop's thread.
class Attachment {
 public:
  using Open = std::function<std::unique_ptr<rendezvous::client::AgentLink>(
      const pb::AgentHello& hello, rendezvous::client::AgentLink::Callbacks callbacks)>;
  // The first messages on every stream but the first.
  struct Memory {
    std::vector<uint64_t> known_workers;
    std::vector<pb::AgentMessage> messages;
  };
  // Called from the loop.
  struct Callbacks {
    std::function<void(const pb::AgentCommand&)> on_command;
    std::function<Memory()> remember;
    // The stream has ended and the attachment tries to open another; `status` says why.
    std::function<void(const absl::Status&)> on_detached;
    // The attachment has ended, for the reason given; last callback. OK: the daemon ended it in
    // good order.
    std::function<void(const absl::Status&)> on_closed;
  };

  // Opens the first stream. If a stream ends after a welcome with reattach_ms, others are opened
  // with the same hello, until that time has passed without a welcome. There is no other stream if
  // the daemon ended the last one in good order, or with a refusal that time does not heal.
  Attachment(EventLoop& loop, Open open, pb::AgentHello hello, Callbacks callbacks);
  ~Attachment();

  // Sends `message` to the daemon. While there is no stream it is dropped: `remember` returns what
  // must arrive.
  void Send(pb::AgentMessage message);

  // Ends the stream after all sent messages; on_closed follows.
  void Finish();

 private:
  void OpenLink();
  void OnCommand(const pb::AgentCommand& command);
  void OnClosed(const absl::Status& status);
  void Close(absl::Status status);

  EventLoop& loop_;
  const Open open_;
  pb::AgentHello hello_;
  const Callbacks callbacks_;
  std::unique_ptr<rendezvous::client::AgentLink> link_;  // null while detached
  uint64_t generation_ = 0;  // of link_: callbacks of earlier links are ignored
  absl::Duration reattach_;
  bool finished_ = false;
  std::mt19937 random_{std::random_device{}()};
  rendezvous::client::BackOff back_off_;
  std::optional<EventLoop::TimerId> retry_timer_;
  std::optional<EventLoop::TimerId> deadline_;  // while the daemon is away
};

}  // namespace hvd::agent

#endif  // AGENT_ATTACHMENT_H_
