// The client side of an agent's gRPC stream to the daemon.
#ifndef RENDEZVOUS_CLIENT_AGENT_LINK_H_
#define RENDEZVOUS_CLIENT_AGENT_LINK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/agent.pb.h"
#include "rendezvous/security/job_credentials.h"
#include "rendezvous/transport/patience.h"

namespace hvd::rendezvous::client {

// Thread-safe. The callbacks come from one of gRPC's threads, one at a time; they must not block
// and must not destroy the link.
class AgentLink {
 public:
  struct Callbacks {
    std::function<void(const pb::AgentCommand&)> on_command;
    // The stream has ended with this status; no callback follows. OK: the daemon closed it
    // normally.
    std::function<void(absl::Status)> on_closed;
  };

  // Attaches: opens the stream to `address` (numeric "address:port") and sends `hello`. If the
  // daemon accepts it, the first command is the welcome; else on_closed gets an error of Attach
  // (proto/agent.proto). The stream ends when the daemon is silent for longer than `patience`
  // allows while its host still answers.
  static std::unique_ptr<AgentLink> Open(const std::string& address,
                                         const security::PeerCredentials& credentials,
                                         const pb::AgentHello& hello, Callbacks callbacks,
                                         const transport::Patience& patience = {});
  // Cancels the stream and drops unsent messages. No callback comes after it returns.
  virtual ~AgentLink() = default;

  // Queues a message. Messages are sent in order. Dropped once the stream has ended.
  virtual void Send(pb::AgentMessage message) = 0;

  // Sends all queued messages, then half-closes the stream; on_closed follows.
  virtual void Finish() = 0;
};

}  // namespace hvd::rendezvous::client

#endif  // RENDEZVOUS_CLIENT_AGENT_LINK_H_
