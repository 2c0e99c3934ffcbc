// The agent's reconnecting connection to the daemon.
#ifndef AGENT_ATTACHMENT_H_
#define AGENT_ATTACHMENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/net/peer/back_off.h"
#include "proto/agent.pb.h"
#include "rendezvous/client/agent_link.h"

namespace hvd::agent {

// A sequence of streams (AgentLinks): when one breaks, the next is opened, so that an agent
// survives a restart of the daemon. Not thread-safe: belongs to the loop's thread.
class Attachment {
 public:
  using Open = std::function<std::unique_ptr<rendezvous::client::AgentLink>(
      const pb::AgentHello& hello, rendezvous::client::AgentLink::Callbacks callbacks)>;
  // The state to replay at the beginning of every stream after the first.
  struct Memory {
    // Fields of the AgentHello.
    uint64_t commit = 0;
    std::string store_address;
    std::string commit_address;
    std::vector<uint64_t> known_workers;
    std::vector<pb::AgentMessage> messages;
  };
  // Called from the loop.
  struct Callbacks {
    std::function<void(const pb::AgentCommand&)> on_command;
    std::function<Memory()> remember;
    // The stream has ended for the reason given, and the attachment tries to open another.
    std::function<void(const absl::Status&)> on_detached;
    // The attachment has ended for the reason given; last callback. OK: the daemon closed it at the
    // end of the agent's work.
    std::function<void(const absl::Status&)> on_closed;
  };

  // Opens the first stream. If a stream breaks, the attachment opens others until `first_patience`
  // has passed without a first welcome, or later the reattach_ms of the last one without another.
  // Their hello is the same, but for what `remember` returns. It does not reconnect after a
  // regular end or after a permanent refusal.
  Attachment(EventLoop& loop, Open open, pb::AgentHello hello, absl::Duration first_patience,
             Callbacks callbacks);
  ~Attachment();

  // Sends `message` to the daemon. Drops it while no stream is open: messages that must arrive are
  // those that `remember` returns.
  void Send(pb::AgentMessage message);

  // Closes the stream once all sent messages have been delivered; on_closed follows.
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
  uint64_t generation_ = 0;  // of link_; callbacks from earlier links are ignored
  absl::Duration patience_;  // how long to do without a stream
  bool welcomed_ = false;
  bool finished_ = false;
  std::mt19937 random_{std::random_device{}()};
  net::peer::BackOff back_off_;
  std::optional<EventLoop::TimerId> retry_timer_;
  std::optional<EventLoop::TimerId> deadline_;  // while the daemon is away
};

}  // namespace hvd::agent

#endif  // AGENT_ATTACHMENT_H_
