// The server side of one agent's gRPC stream.
#ifndef RENDEZVOUS_SERVER_AGENT_STREAM_H_
#define RENDEZVOUS_SERVER_AGENT_STREAM_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "grpcpp/support/server_callback.h"
#include "proto/agent.pb.h"
#include "rendezvous/server/agent_service.h"

namespace hvd::rendezvous::server {

// Reads until the end of the stream, and writes one command at a time. Thread-safe. Owns itself
// until OnDone; AgentService shares ownership.
//
// Closing: the first call of Close determines the status. The stream is finished at once if no
// write is in progress, otherwise after the write that empties the queue.
class AgentStream final : public grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand>,
                          public std::enable_shared_from_this<AgentStream> {
 public:
  enum class Queued { kSend, kDrop };

  // `peer_host`: see PeerHost.
  AgentStream(AgentService& service, std::string peer_host);

  const std::string& peer_host() const { return peer_host_; }

  // Starts reading. Not part of the constructor, because gRPC may call back before it has returned.
  void Start();

  // Queues a command. Ignored once the stream is closed.
  void Send(pb::AgentCommand command);

  // Ends the stream with `status`. Only the first call sets the status; kDrop empties the queue in
  // any call.
  void Close(const absl::Status& status, Queued queued);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // Writes the next command, or finishes the stream. Called without the lock, by the thread that
  // has set writing_.
  void WriteOrFinish();
  bool TakeMessage();

  AgentService& service_;
  const std::string peer_host_;
  std::shared_ptr<AgentStream> self_;  // until OnDone

  // Used by the read callbacks only, which gRPC calls one at a time.
  pb::AgentMessage incoming_;
  std::string host_;  // empty: not attached

  pb::AgentCommand outgoing_;  // used only by the thread that has set writing_

  absl::Mutex mu_;
  std::deque<pb::AgentCommand> queue_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  absl::optional<absl::Status> closed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_AGENT_STREAM_H_
