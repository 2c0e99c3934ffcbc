#include "agent/attachment.h"

#include <utility>

#include "base/failpoint/failpoint.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::agent {
namespace {

constexpr absl::Duration kShortestPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

// Whether a stream that ended with `status` may be followed by another. Once this agent has been
// welcome, the certificate of another job is a temporary error: somebody else's daemon has the port
// while ours is away. AlreadyExists is the daemon's word that another agent has this host's place.
bool TimeMayHeal(const absl::Status& status, bool welcomed) {
  if (!welcomed && rendezvous::transport::IsOfAnotherJob(status)) return false;
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return false;
    default:
      return true;
  }
}

}  // namespace

Attachment::Attachment(EventLoop& loop, Open open, pb::AgentHello hello,
                       absl::Duration first_patience, Callbacks callbacks)
    : loop_(loop),
      open_(std::move(open)),
      hello_(std::move(hello)),
      callbacks_(std::move(callbacks)),
      patience_(first_patience),
      back_off_(kShortestPause, kLongestPause) {
  OpenLink();
}

Attachment::~Attachment() {
  if (retry_timer_.has_value()) loop_.Cancel(*retry_timer_);
  if (deadline_.has_value()) loop_.Cancel(*deadline_);
}

void Attachment::OpenLink() {
  // The link's callbacks come from other threads and are posted to the loop. One that is still
  // queued when its link has been replaced has an old generation, and is ignored.
  const uint64_t generation = ++generation_;
  link_ = open_(hello_, {[this, generation](const pb::AgentCommand& command) {
                           loop_.Post([this, generation, command] {
                             if (generation == generation_) OnCommand(command);
                           });
                         },
                         [this, generation](absl::Status status) {
                           loop_.Post([this, generation, status] {
                             if (generation == generation_) OnClosed(status);
                           });
                         }});
  FAILPOINT("agent.attach.opened");
}

void Attachment::Send(pb::AgentMessage message) {
  if (link_ != nullptr) link_->Send(std::move(message));
}

void Attachment::Finish() {
  finished_ = true;
  if (link_ != nullptr) return link_->Finish();
  loop_.Post([this, generation = generation_] {
    if (generation == generation_) Close(absl::UnavailableError("the daemon is away"));
  });
}

void Attachment::OnCommand(const pb::AgentCommand& command) {
  if (command.has_welcome()) {
    patience_ = absl::Milliseconds(command.welcome().reattach_ms());
    welcomed_ = true;
    back_off_ = net::peer::BackOff(kShortestPause, kLongestPause);
    if (deadline_.has_value()) loop_.Cancel(*deadline_);
    deadline_.reset();
  }
  callbacks_.on_command(command);
}

void Attachment::OnClosed(const absl::Status& status) {
  if (finished_ || patience_ <= absl::ZeroDuration() || !TimeMayHeal(status, welcomed_)) {
    return Close(status);
  }
  // The deadline is set at the first failure only, so that failed attempts do not extend it; a
  // welcome clears it.
  ++generation_;
  link_.reset();
  if (!deadline_.has_value()) {
    deadline_ = loop_.After(patience_, [this, status] { Close(status); });
    callbacks_.on_detached(status);
  }
  retry_timer_ = loop_.After(back_off_.Next(random_), [this] {
    // The state is read at the time of the attempt. It is sent before any new message: Send and
    // this task run on the same thread.
    const Memory memory = callbacks_.remember();
    hello_.set_commit(memory.commit);
    hello_.set_store_address(memory.store_address);
    hello_.set_commit_address(memory.commit_address);
    *hello_.mutable_known_workers() = {memory.known_workers.begin(), memory.known_workers.end()};
    OpenLink();
    FAILPOINT("agent.attach.again");
    for (const pb::AgentMessage& message : memory.messages) link_->Send(message);
  });
}

// `status` is passed by value, because it may be owned by the timer that is cancelled here.
void Attachment::Close(absl::Status status) {
  ++generation_;
  if (retry_timer_.has_value()) loop_.Cancel(*retry_timer_);
  if (deadline_.has_value()) loop_.Cancel(*deadline_);
  callbacks_.on_closed(status);
}

}  // namespace hvd::agent
