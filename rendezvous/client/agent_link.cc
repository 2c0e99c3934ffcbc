#include "rendezvous/client/agent_link.h"

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/text/duration_text.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
#include "proto/agent.grpc.pb.h"
#include "rendezvous/transport/connection.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::client {
namespace {

// Reads until the end of the stream, and writes one message at a time. gRPC requires a hold
// (AddHold) for writes that are started outside of a reaction. The hold is taken in Start, and
// released when reading has ended and no write is in progress; no write starts after that.
class AgentLinkImpl final : public AgentLink,
                            private grpc::ClientBidiReactor<pb::AgentMessage, pb::AgentCommand> {
 public:
  AgentLinkImpl(const std::string& address, const security::PeerCredentials& credentials,
                Callbacks callbacks, const transport::Patience& patience)
      : callbacks_(std::move(callbacks)),
        silence_(patience.silence),
        stub_(pb::Agent::NewStub(transport::NewChannel(address, credentials, patience))) {}

  void Start(const pb::AgentHello& hello) {
    stub_->async()->Attach(&context_, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
    pb::AgentMessage message;
    *message.mutable_hello() = hello;
    Send(std::move(message));
  }

  ~AgentLinkImpl() override {
    {
      absl::MutexLock lock(&mu_);
      silent_ = true;
      queue_.clear();
    }
    context_.TryCancel();
    absl::MutexLock lock(&mu_);
    // A cancelled call ends soon, even if the network does not respond.
    mu_.Await(absl::Condition(
        +[](Incoming* side) { return *side == Incoming::kDone; }, &incoming_side_));
  }

  void Send(pb::AgentMessage message) override {
    {
      absl::MutexLock lock(&mu_);
      if (outgoing_side_ != Outgoing::kOpen || incoming_side_ != Incoming::kReading) return;
      queue_.push_back(std::move(message));
      if (writing_) return;
      writing_ = true;
    }
    WriteNext();
  }

  void Finish() override {
    {
      absl::MutexLock lock(&mu_);
      if (outgoing_side_ != Outgoing::kOpen || incoming_side_ != Incoming::kReading) return;
      outgoing_side_ = Outgoing::kEnding;
      if (writing_) return;
      writing_ = true;
    }
    WriteNext();
  }

 private:
  // kOpen --Finish--> kEnding --the queue is empty--> kEnded
  enum class Outgoing { kOpen, kEnding, kEnded };
  // kReading --a read fails--> kOver --no hold is left--> kDone
  enum class Incoming { kReading, kOver, kDone };

  // Writes the next message, half-closes the stream, or releases the hold. Called without the lock,
  // by the thread that has set writing_.
  void WriteNext() {
    enum { kWrite, kFinish, kRelease } step;
    {
      absl::MutexLock lock(&mu_);
      const bool reading = incoming_side_ == Incoming::kReading;
      if (!queue_.empty() && reading) {
        outgoing_ = std::move(queue_.front());
        queue_.pop_front();
        step = kWrite;
      } else if (outgoing_side_ == Outgoing::kEnding && reading) {
        outgoing_side_ = Outgoing::kEnded;
        step = kFinish;
      } else {
        writing_ = false;
        if (reading) return;
        step = kRelease;
      }
    }
    if (step == kWrite) StartWrite(&outgoing_);
    if (step == kFinish) StartWritesDone();
    if (step == kRelease) RemoveHold();
  }

  void OnWriteDone(bool) override { WriteNext(); }
  void OnWritesDoneDone(bool) override { WriteNext(); }

  void OnReadDone(bool ok) override {
    bool idle = false;
    bool silent = false;
    {
      absl::MutexLock lock(&mu_);
      if (!ok) incoming_side_ = Incoming::kOver;
      idle = !writing_;
      silent = silent_;
    }
    if (ok) {
      if (!silent) callbacks_.on_command(incoming_);
      StartRead(&incoming_);
    } else if (idle) {
      RemoveHold();
    }
  }

  void OnDone(const grpc::Status& status) override {
    bool silent = false;
    {
      absl::MutexLock lock(&mu_);
      silent = silent_;
    }
    if (!silent) callbacks_.on_closed(Explain(status));
    absl::MutexLock lock(&mu_);
    incoming_side_ = Incoming::kDone;
  }

  // Replaces gRPC's message on a keepalive timeout, which users can't interpret.
  absl::Status Explain(const grpc::Status& status) const {
    if (!absl::StrContains(status.error_message(), "keepalive watchdog")) {
      return transport::FromGrpcStatus(status);
    }
    return absl::UnavailableError(absl::StrCat("it was silent for ", text::DurationText(silence_),
                                               "; HOROVOD_AGENT_TIMEOUT_SECONDS allows for more"));
  }

  const Callbacks callbacks_;
  const absl::Duration silence_;
  const std::unique_ptr<pb::Agent::Stub> stub_;
  grpc::ClientContext context_;
  pb::AgentCommand incoming_;  // used by the read callbacks only
  pb::AgentMessage outgoing_;  // used only by the thread that has set writing_

  absl::Mutex mu_;
  std::deque<pb::AgentMessage> queue_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  Outgoing outgoing_side_ ABSL_GUARDED_BY(mu_) = Outgoing::kOpen;
  Incoming incoming_side_ ABSL_GUARDED_BY(mu_) = Incoming::kReading;
  bool silent_ ABSL_GUARDED_BY(mu_) = false;  // the destructor has started: no further callback
};

}  // namespace

std::unique_ptr<AgentLink> AgentLink::Open(const std::string& address,
                                           const security::PeerCredentials& credentials,
                                           const pb::AgentHello& hello, Callbacks callbacks,
                                           const transport::Patience& patience) {
  auto link = std::make_unique<AgentLinkImpl>(address, credentials, std::move(callbacks), patience);
  link->Start(hello);
  return link;
}

}  // namespace hvd::rendezvous::client
