// The daemon's end of one agent's stream.
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

// Reads until the end of the stream, writes one command at a time. Thread-safe. Lives until gRPC is
// done with it and there is no other owner.
//
// Its end: the first call of Close determines the status. The stream is finished at once if no
// write is under way, else by the write that empties the queue.
class AgentStream final : public grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand>,
                          public std::enable_shared_from_this<AgentStream> {
 public:
  enum class Queued { kSend, kDrop };

  // `peer_host`: see PeerHost.
  AgentStream(AgentService& service, std::string peer_host);

  const std::string& peer_host() const { return peer_host_; }

  // Starts to read. Separate, since gRPC may call back at once.
  void Start();

  // Queues a command. Dropped once the stream is closed.
  void Send(pb::AgentCommand command);

  // Ends the stream with `status`; only the first call counts, except that kDrop always empties the
  // queue.
  void Close(const absl::Status& status, Queued queued);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // The next step of the write flow. Called without lock by the caller that has set writing_.
  void WriteOrFinish();
  bool TakeMessage();

  AgentService& service_;
  const std::string peer_host_;
  std::shared_ptr<AgentStream> self_;  // until OnDone

  // The read flow's: its reactions follow one another.
  pb::AgentMessage incoming_;
  std::string host_;  // empty: not attached

  pb::AgentCommand outgoing_;  // the write flow's: of the caller that has set writing_

  absl::Mutex mu_;
  std::deque<pb::AgentCommand> queue_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  absl::optional<absl::Status> closed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_AGENT_STREAM_H_
