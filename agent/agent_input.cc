#include "agent/agent_input.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace hvd::agent {

AgentInput::AgentInput(EventLoop& loop, int fd, Callbacks callbacks)
    : loop_(loop), fd_(fd), callbacks_(std::move(callbacks)) {
  (void)SetNonBlocking(fd_);
  absl::Status watched = loop_.Watch(fd_, EPOLLIN, [this](uint32_t) { OnReadable(); });
  // Posted, since all callbacks come from the loop and not from the constructor.
  if (!watched.ok()) {
    loop_.Post([this, watched] { Unreadable(watched); });
  }
}

AgentInput::~AgentInput() { loop_.Forget(fd_); }

void AgentInput::OnReadable() {
  char buffer[64 << 10];
  const IoResult got = ReadSome(fd_, buffer, sizeof(buffer));
  if (got.would_block) return;
  // Forgotten first: at its end the descriptor stays readable, and the loop would spin.
  if (got.end) {
    loop_.Forget(fd_);
    return callbacks_.on_end();
  }
  if (complete_) return;  // data after the bootstrap is ignored
  decoder_.Append({buffer, got.bytes});
  TakeBootstrap();
}

void AgentInput::TakeBootstrap() {
  const absl::StatusOr<std::optional<std::string>> payload = decoder_.Next();
  if (!payload.ok()) return Unreadable(payload.status());
  // The frame may arrive in several pieces, through ssh or srun.
  if (!payload->has_value()) return;
  complete_ = true;
  pb::AgentBootstrap bootstrap;
  if (!bootstrap.ParseFromString(**payload)) {
    return Unreadable(absl::InvalidArgumentError("a broken message"));
  }
  callbacks_.on_bootstrap(bootstrap);
}

void AgentInput::Unreadable(absl::Status why) {
  loop_.Forget(fd_);
  callbacks_.on_unreadable(std::move(why));
}

}  // namespace hvd::agent
