#include "rendezvous/server/agent_stream.h"

#include <utility>

#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::server {
namespace {

// The reason of a HostLost: gRPC does not give a more precise one.
constexpr char kConnectionEnded[] =
    "the connection to its agent has ended: the agent was killed, its host does not answer, or it "
    "was silent for longer than HOROVOD_AGENT_TIMEOUT_SECONDS";

absl::Status NoHello() {
  return absl::InvalidArgumentError("an agent's first message must be its hello");
}

}  // namespace

AgentStream::AgentStream(AgentService& service, std::string peer_host)
    : service_(service), peer_host_(std::move(peer_host)) {}

void AgentStream::Start() {
  self_ = shared_from_this();
  StartRead(&incoming_);
}

void AgentStream::Send(pb::AgentCommand command) {
  {
    absl::MutexLock lock(&mu_);
    if (closed_.has_value()) return;
    queue_.push_back(std::move(command));
    if (writing_) return;
    writing_ = true;
  }
  WriteOrFinish();
}

void AgentStream::Close(const absl::Status& status, Queued queued) {
  {
    absl::MutexLock lock(&mu_);
    // Also if the stream is closing already: the remaining commands have no receiver any more, and
    // would only delay Finish.
    if (queued == Queued::kDrop) queue_.clear();
    if (closed_.has_value()) return;
    closed_ = status;
    if (writing_) return;
    writing_ = true;
  }
  WriteOrFinish();
}

void AgentStream::WriteOrFinish() {
  bool write = false;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    if (!queue_.empty()) {
      outgoing_ = std::move(queue_.front());
      queue_.pop_front();
      write = true;
    } else if (closed_.has_value()) {
      status = *closed_;  // writing_ stays set, so that no further write starts
    } else {
      writing_ = false;
      return;
    }
  }
  // Outside the lock, like every call to gRPC. Only the thread that has set writing_ gets here, so
  // there is one write at a time, as gRPC requires.
  if (write) {
    StartWrite(&outgoing_);
  } else {
    Finish(transport::ToGrpcStatus(status));
  }
}

void AgentStream::OnWriteDone(bool ok) {
  if (!ok) {
    absl::MutexLock lock(&mu_);
    queue_.clear();
  }
  WriteOrFinish();
}

void AgentStream::OnReadDone(bool ok) {
  if (ok) {
    if (TakeMessage()) StartRead(&incoming_);
    return;
  }
  // gRPC does not distinguish the causes: the client half-closed the stream, the connection broke,
  // a message could not be parsed, or this side has finished.
  if (host_.empty()) return Close(NoHello(), Queued::kDrop);
  service_.Left(*this, host_, kConnectionEnded);
  Close(absl::OkStatus(), Queued::kDrop);
}

bool AgentStream::TakeMessage() {
  if (!host_.empty()) {
    const absl::Status received = service_.Received(*this, host_, incoming_);
    if (received.ok()) return true;
    service_.Left(*this, host_, std::string(received.message()));
    Close(received, Queued::kDrop);
    return false;
  }
  const absl::Status welcome =
      incoming_.has_hello() ? service_.Welcome(incoming_.hello(), self_) : NoHello();
  if (!welcome.ok()) {
    Close(welcome, Queued::kDrop);
    return false;
  }
  host_ = incoming_.hello().host();
  return true;
}

void AgentStream::OnCancel() {
  // The pending read fails as well, and OnReadDone notifies the service; here only the writes must
  // end.
  Close(absl::CancelledError("the connection broke"), Queued::kDrop);
}

void AgentStream::OnDone() {
  const std::shared_ptr<AgentStream> self = std::move(self_);
  // `self` keeps the stream alive until the return, although Forget drops the service's reference.
  service_.Forget(self);
}

}  // namespace hvd::rendezvous::server
