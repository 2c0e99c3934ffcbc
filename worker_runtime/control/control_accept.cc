// Rank 0's side of the connection setup of a control channel.
#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/event_loop.h"
#include "base/net/peer/peer_listener.h"
#include "base/net/tcp_socket.h"
#include "base/status_macros.h"
#include "worker_runtime/control/control_connect.h"

namespace hvd::worker_runtime::control {
namespace {

// At each stage of the handshake there may be as many unproven connections as members, and these.
// Members alone never exceed the bound, and a member that was dismissed connects again.
constexpr size_t kSpareStrangers = 128;
// How long a connection may take to prove that it is a member's. Long, since a member may be
// starved of CPU.
constexpr absl::Duration kPatience = absl::Seconds(30);

// Accepts the members' connections among those of strangers, on the calling thread.
class MemberAcceptor {
 public:
  MemberAcceptor(const collectives::GroupInfo& group, std::unique_ptr<EventLoop> loop, Fd listener)
      : group_(group),
        loop_(std::move(loop)),
        members_(group.size),
        listener_(
            *loop_, std::move(listener), group.tls,
            [this](std::string binding) {
              return collectives::MakeAcceptorHandshake(kControlProtocol, group_,
                                                        std::move(binding));
            },
            {kSpareStrangers + static_cast<size_t>(group.size), kPatience},
            [this](net::Wire wire, int peer) { Admit(std::move(wire), peer); }) {}

  absl::StatusOr<std::vector<net::Wire>> Run(const WaitBounds& bounds) {
    if (missing_ == 0) return std::move(members_);
    loop_->After(bounds.timeout, [this] { loop_->Stop(); });
    if (bounds.cancellation != nullptr && bounds.cancellation->fd() >= 0) {
      RETURN_IF_ERROR(
          loop_->Watch(bounds.cancellation->fd(), EPOLLIN, [this](uint32_t) { loop_->Stop(); }));
    }
    RETURN_IF_ERROR(listener_.Begin());
    loop_->Run();
    if (bounds.cancellation != nullptr) RETURN_IF_ERROR(bounds.cancellation->status());
    if (missing_ > 0) return MissingError(bounds.timeout);
    return std::move(members_);
  }

 private:
  // A member that lost its connection after its proof has connected again: the newest one counts.
  void Admit(net::Wire wire, int peer) {
    if (!net::TuneForMessages(wire.fd()).ok()) return;
    if (!members_[peer].valid()) --missing_;
    members_[peer] = std::move(wire);
    if (missing_ == 0) loop_->Stop();
  }

  absl::Status MissingError(absl::Duration timeout) const {
    std::vector<int> missing;
    for (int rank = 1; rank < group_.size; ++rank) {
      if (!members_[rank].valid()) missing.push_back(rank);
    }
    std::string text = absl::StrCat("rank 0 waited ", absl::FormatDuration(timeout),
                                    ", but got no control connection from rank ",
                                    absl::StrJoin(missing, ", rank "));
    const int refused = listener_.refused();
    if (refused > 0) absl::StrAppend(&text, "; ", refused, " connections without proof refused");
    return absl::DeadlineExceededError(text);
  }

  const collectives::GroupInfo& group_;
  const std::unique_ptr<EventLoop> loop_;
  std::vector<net::Wire> members_;
  int missing_ = group_.size - 1;
  net::peer::PeerListener listener_;
};

}  // namespace

absl::StatusOr<std::vector<net::Wire>> AcceptMembers(const collectives::GroupInfo& group,
                                                     int listener, const WaitBounds& bounds) {
  Fd own(fcntl(listener, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return absl::UnavailableError(absl::StrCat("fcntl: ", strerror(errno)));
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  return MemberAcceptor(group, std::move(loop), std::move(own)).Run(bounds);
}

}  // namespace hvd::worker_runtime::control
