#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collectives/shm/meeting_protocol.h"
#include "collectives/shm/meeting_sides.h"

namespace hvd::meeting {
namespace {

constexpr size_t kNameBytes = 16;  // random

// Who is at the other end: nobody's user if that can't be told.
ucred UserOf(int socket) {
  ucred peer = {0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  socklen_t length = sizeof(peer);
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return peer;
}

// None for a process that this one can't see, as from another container.
Fd OpenProcess(pid_t pid) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

class HostSide {
 public:
  HostSide(const GroupInfo& group, Fd bell, const WaitBounds& bounds)
      : group_(group),
        patience_(bounds),
        links_(group.size),
        bells_(group.size),
        processes_(group.size) {
    bells_[0] = std::move(bell);
    processes_[0] = OpenProcess(getpid());
  }

  absl::StatusOr<Meeting> Run(KeyExchange& keys, const WaitBounds& bounds) {
    const std::string name = absl::BytesToHexString(RandomBytes(kNameBytes));
    listener_ = NewSocket();
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(name, &length);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        listen(listener_.get(), SOMAXCONN) != 0) {
      return absl::UnavailableError(absl::StrCat("no socket to meet at: ", strerror(errno)));
    }
    ASSIGN_OR_RETURN(invitation_, Invite(group_, keys, name, bounds));
    RETURN_IF_ERROR(Gather());
    auto segment = Segment::Create(group_.size, GeometryFor(group_.size));
    if (!segment.ok()) Blame(absl::StatusCode::kUnimplemented, 0);
    RETURN_IF_ERROR(HandOut(segment.ok() ? segment->fd() : -1));
    RETURN_IF_ERROR(ToStatus(verdict_));
    RETURN_IF_ERROR(Confirm());
    RETURN_IF_ERROR(ToStatus(verdict_));
    return Meeting{*std::move(segment), std::move(bells_), std::move(links_),
                   std::move(processes_)};
  }

 private:
  void Blame(absl::StatusCode code, int rank) {
    if (verdict_.code == 0) verdict_ = {static_cast<int32_t>(code), rank, {}};
  }

  std::vector<int> Missing() const {
    std::vector<int> missing;
    for (int rank = 1; rank < group_.size; ++rank) {
      if (!links_[rank].valid()) missing.push_back(rank);
    }
    return missing;
  }

  // Until everyone has said who it is; all are heard before any is judged, so that a rank that is
  // refused learns why.
  absl::Status Gather() {
    while (!Missing().empty()) {
      std::vector<pollfd> fds = {{listener_.get(), POLLIN, 0}};
      for (const Fd& stranger : strangers_) fds.push_back({stranger.get(), POLLIN, 0});
      const absl::Status waited = patience_.Await(fds);
      if (absl::IsDeadlineExceeded(waited)) {
        return absl::DeadlineExceededError(
            absl::StrCat("waited ", absl::FormatDuration(patience_.timeout()), " in vain for rank ",
                         absl::StrJoin(Missing(), ", rank ")));
      }
      RETURN_IF_ERROR(waited);
      for (size_t i = strangers_.size(); i > 0; --i) {
        if (fds[i].revents != 0) Greet(i - 1);
      }
      if (fds[0].revents != 0) {
        Fd stranger(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (stranger.valid() && UserOf(stranger.get()).uid == geteuid()) {
          strangers_.push_back(std::move(stranger));
        }
      }
    }
    return absl::OkStatus();
  }

  void Greet(size_t index) {
    Fd stranger = std::move(strangers_[index]);
    strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(index));
    std::vector<Fd> passed;
    const absl::StatusOr<Hello> hello = Receive<Hello>(stranger.get(), passed);
    const bool makes_sense = hello.ok() && passed.size() == 1 && hello->rank > 0 &&
                             hello->rank < group_.size && !links_[hello->rank].valid();
    if (!makes_sense) return;
    const absl::string_view proof(hello->proof, sizeof(hello->proof));
    if (!CheckProof(group_, invitation_, hello->rank, proof)) {
      Blame(absl::StatusCode::kPermissionDenied, hello->rank);
    }
    links_[hello->rank] = std::move(stranger);
    bells_[hello->rank] = std::move(passed.front());
    processes_[hello->rank] = OpenProcess(UserOf(links_[hello->rank].get()).pid);
  }

  // All or none: a message has no gaps, and takes so many.
  void ChooseProcesses() {
    const bool all = std::all_of(processes_.begin(), processes_.end(),
                                 [](const Fd& process) { return process.valid(); });
    if (!all || 1 + bells_.size() + processes_.size() > kMostPassedDescriptors) processes_.clear();
  }

  absl::Status HandOut(int memory) {
    Answer answer = verdict_;
    const std::string proof = Proof(group_, invitation_, 0);
    memcpy(answer.proof, proof.data(), sizeof(answer.proof));
    std::vector<int> descriptors;
    if (verdict_.code == 0) {
      descriptors.push_back(memory);
      for (const Fd& bell : bells_) descriptors.push_back(bell.get());
      ChooseProcesses();
      for (const Fd& process : processes_) descriptors.push_back(process.get());
    }
    return TellAll(answer, descriptors);
  }

  absl::Status Confirm() {
    for (int rank = 1; rank < group_.size; ++rank) {
      RETURN_IF_ERROR(patience_.AwaitReadable(links_[rank].get()));
      std::vector<Fd> none;
      const absl::StatusOr<Mapped> mapped = Receive<Mapped>(links_[rank].get(), none);
      if (!mapped.ok()) Blame(absl::StatusCode::kUnavailable, rank);
      if (mapped.ok() && mapped->ok == 0) Blame(absl::StatusCode::kUnimplemented, rank);
    }
    return TellAll(verdict_, {});
  }

  absl::Status TellAll(const Answer& answer, const std::vector<int>& descriptors) {
    for (int rank = 1; rank < group_.size; ++rank) {
      const absl::Status sent = Send(links_[rank].get(), answer, descriptors);
      if (!sent.ok()) return GoneError(rank, sent);
    }
    return absl::OkStatus();
  }

  const GroupInfo& group_;
  const Patience patience_;
  Fd listener_;
  Invitation invitation_;
  std::vector<Fd> strangers_;  // have not said who they are
  std::vector<Fd> links_, bells_, processes_;
  Answer verdict_ = {};
};

}  // namespace

absl::StatusOr<Meeting> Host(const GroupInfo& group, KeyExchange& keys, Fd bell,
                             const WaitBounds& bounds) {
  return HostSide(group, std::move(bell), bounds).Run(keys, bounds);
}

}  // namespace hvd::meeting
