#include "worker_runtime/engine/control_connect.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "worker_runtime/engine/handshake.h"
#include "worker_runtime/engine/tcp_socket.h"

namespace hvd {
namespace {

// Connections that have not proved anything yet; above this the oldest must go.
constexpr size_t kMostStrangers = 256;

// A handshake's parts are far smaller than a fresh socket's buffer.
bool SendAll(int fd, const std::string& bytes) {
  return bytes.empty() ||
         send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

enum class ReadOutcome { kWhole, kPartial, kEnd };

// Reads towards `wanted` bytes and never past them.
ReadOutcome ReadTowards(int fd, size_t wanted, std::string& buffer) {
  const size_t had = buffer.size();
  buffer.resize(wanted);
  const ssize_t got = recv(fd, &buffer[had], wanted - had, 0);
  buffer.resize(had + (got > 0 ? got : 0));
  if (buffer.size() == wanted) return ReadOutcome::kWhole;
  const bool later = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  return later ? ReadOutcome::kPartial : ReadOutcome::kEnd;
}

// Rank 0's side of meeting everybody.
class Acceptor {
 public:
  Acceptor(const GroupInfo& group, int listener)
      : group_(group), listener_(listener), members_(group.size) {}

  absl::StatusOr<std::vector<Fd>> Run(const WaitBounds& bounds) {
    const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
    const int cancelled = bounds.cancellation == nullptr ? -1 : bounds.cancellation->fd();
    while (missing_ > 0) {
      std::vector<pollfd> fds{{listener_, POLLIN, 0}, {cancelled, POLLIN, 0}};
      for (const Stranger& stranger : strangers_) fds.push_back({stranger.fd.get(), POLLIN, 0});
      const int ready = poll(fds.data(), fds.size(), TimeoutUntil(deadline));
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0) return absl::UnavailableError(absl::StrCat("poll: ", strerror(errno)));
      if (fds[1].revents != 0) return bounds.cancellation->status();
      if (Clock::Real().Now() >= deadline) return MissingError(bounds.timeout);
      size_t i = 2;
      for (auto stranger = strangers_.begin(); stranger != strangers_.end(); ++i) {
        auto next = std::next(stranger);
        if (fds[i].revents != 0) Serve(stranger);
        stranger = next;
      }
      if (fds[0].revents != 0) Accept();
    }
    return std::move(members_);
  }

 private:
  struct Stranger {
    Fd fd;
    RootHandshake handshake;
    std::string buffer;
  };
  using Strangers = std::list<Stranger>;

  void Accept() {
    Fd fd(accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    if (strangers_.size() >= kMostStrangers) strangers_.pop_front();
    strangers_.push_back(Stranger{std::move(fd), RootHandshake(group_), ""});
  }

  enum class Verdict { kGoesOn, kAdmitted, kRefused };

  void Serve(Strangers::iterator stranger) {
    const Verdict verdict = Judge(*stranger);
    if (verdict == Verdict::kGoesOn) return;
    if (verdict == Verdict::kRefused) ++refused_;
    strangers_.erase(stranger);
  }

  Verdict Judge(Stranger& stranger) {
    const size_t wanted = stranger.handshake.wanted();
    switch (ReadTowards(stranger.fd.get(), wanted, stranger.buffer)) {
      case ReadOutcome::kPartial:
        return Verdict::kGoesOn;
      case ReadOutcome::kEnd:
        return Verdict::kRefused;
      case ReadOutcome::kWhole:
        break;
    }
    auto answer = stranger.handshake.Step(std::exchange(stranger.buffer, ""));
    if (!answer.ok()) return Verdict::kRefused;
    if (stranger.handshake.wanted() == 0) return Admit(stranger, *answer);
    return SendAll(stranger.fd.get(), *answer) ? Verdict::kGoesOn : Verdict::kRefused;
  }

  Verdict Admit(Stranger& stranger, const std::string& welcome) {
    Fd& member = members_[stranger.handshake.peer_rank()];
    // The first of a rank stays.
    if (member.valid() || !TuneForMessages(stranger.fd.get()).ok() ||
        !SendAll(stranger.fd.get(), welcome)) {
      return Verdict::kRefused;
    }
    member = std::move(stranger.fd);
    --missing_;
    return Verdict::kAdmitted;
  }

  absl::Status MissingError(absl::Duration timeout) const {
    std::vector<int> missing;
    for (int rank = 1; rank < group_.size; ++rank) {
      if (!members_[rank].valid()) missing.push_back(rank);
    }
    std::string text = absl::StrCat("rank 0 waited ", absl::FormatDuration(timeout),
                                    " in vain for the control connection of rank ",
                                    absl::StrJoin(missing, ", rank "));
    if (refused_ > 0) absl::StrAppend(&text, "; ", refused_, " connections without proof refused");
    return absl::DeadlineExceededError(text);
  }

  const GroupInfo& group_;
  const int listener_;
  std::vector<Fd> members_;
  int missing_ = group_.size - 1;
  Strangers strangers_;  // oldest first
  int refused_ = 0;
};

absl::StatusOr<std::string> ReadWhole(int fd, size_t wanted, absl::Time deadline,
                                      const Cancellation* cancellation) {
  std::string buffer;
  while (true) {
    RETURN_IF_ERROR(AwaitReady(fd, POLLIN, deadline, cancellation));
    switch (ReadTowards(fd, wanted, buffer)) {
      case ReadOutcome::kWhole:
        return buffer;
      case ReadOutcome::kEnd:
        return absl::UnavailableError("rank 0 hung up before it knew who we are");
      case ReadOutcome::kPartial:
        break;
    }
  }
}

absl::Status RunMemberHandshake(const GroupInfo& group, int fd, absl::Time deadline,
                                const Cancellation* cancellation) {
  MemberHandshake handshake(group);
  ASSIGN_OR_RETURN(std::string answer, handshake.Start());
  while (true) {
    if (!SendAll(fd, answer)) return absl::UnavailableError("rank 0 hung up");
    if (handshake.wanted() == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadWhole(fd, handshake.wanted(), deadline, cancellation));
    ASSIGN_OR_RETURN(answer, handshake.Step(bytes));
  }
}

}  // namespace

absl::StatusOr<std::vector<Fd>> AcceptMembers(const GroupInfo& group, int listener,
                                              const WaitBounds& bounds) {
  return Acceptor(group, listener).Run(bounds);
}

absl::StatusOr<Fd> ConnectToRoot(const GroupInfo& group, const std::string& address, int port,
                                 const WaitBounds& bounds) {
  const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
  auto connect = [&]() -> absl::StatusOr<Fd> {
    ASSIGN_OR_RETURN(Fd fd, ConnectTo(address, port, deadline, bounds.cancellation));
    RETURN_IF_ERROR(TuneForMessages(fd.get()));
    RETURN_IF_ERROR(RunMemberHandshake(group, fd.get(), deadline, bounds.cancellation));
    return fd;
  };
  absl::StatusOr<Fd> fd = connect();
  if (fd.ok()) return fd;
  return absl::Status(fd.status().code(),
                      absl::StrCat("rank ", group.rank, ": control connection to rank 0 at ",
                                   address, " port ", port, ": ", fd.status().message()));
}

}  // namespace hvd
