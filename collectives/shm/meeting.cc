#include "collectives/shm/meeting.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
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
#include "base/clock.h"
#include "base/crypto.h"
#include "base/descriptor_passing.h"
#include "base/status_macros.h"

namespace hvd {
namespace {

constexpr size_t kNameBytes = 16;   // random
constexpr size_t kNonceBytes = 16;  // random

// A member's first word, with its bell.
struct Hello {
  int32_t rank;
  char proof[kHmacSha256Bytes];
};
// Rank 0's answers: the first comes with the memory and all bells, the second says what came out.
struct Answer {
  int32_t code;  // absl::StatusCode
  int32_t rank;  // whom an error is about
  char proof[kHmacSha256Bytes];
};
// A member's second word: whether it could map the memory.
struct Mapped {
  int32_t ok;
};

// What all ranks know of the meeting from the key exchange, so that a proof is good for it alone.
struct Invitation {
  std::string socket_name;
  std::string transcript;
};

absl::StatusOr<Invitation> Invite(const GroupInfo& group, KeyExchange& keys,
                                  const std::string& socket_name, const WaitBounds& bounds) {
  const std::string value = absl::StrCat(socket_name, RandomBytes(kNonceBytes));
  ASSIGN_OR_RETURN(const std::vector<std::string> values,
                   keys.AllGather("shm", value, bounds.timeout));
  if (values.size() != static_cast<size_t>(group.size) || values[0].size() < kNonceBytes) {
    return absl::InternalError("the key exchange has given something else than the ranks' values");
  }
  return Invitation{values[0].substr(0, values[0].size() - kNonceBytes),
                    absl::StrCat(group.epoch.value(), "\n", absl::StrJoin(values, "\n"))};
}

std::string Proof(const GroupInfo& group, const Invitation& invitation, int from) {
  return HmacSha256(group.secret, absl::StrCat("shm\n", from, "\n", invitation.transcript));
}

bool CheckProof(const GroupInfo& group, const Invitation& invitation, int from,
                absl::string_view proof) {
  return CheckHmacSha256(group.secret, absl::StrCat("shm\n", from, "\n", invitation.transcript),
                         proof);
}

sockaddr_un AddressOf(absl::string_view name, socklen_t* length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The leading zero makes it abstract: it is in no file system and ends with the socket.
  memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof(address.sun_path) - 1));
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Fd NewSocket() { return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

bool IsSameUser(int socket) {
  ucred peer = {};
  socklen_t length = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

// Waits until one of `fds` is ready; the cancellation's descriptor is added.
class Patience {
 public:
  explicit Patience(const WaitBounds& bounds)
      : bounds_(bounds), deadline_(Clock::Real().Now() + bounds.timeout) {}

  // DeadlineExceeded, or the cancellation's status.
  absl::Status Await(std::vector<pollfd>& fds) const {
    fds.push_back({bounds_.cancellation == nullptr ? -1 : bounds_.cancellation->fd(), POLLIN, 0});
    while (true) {
      const absl::Duration left = deadline_ - Clock::Real().Now();
      const int64_t milliseconds = absl::ToInt64Milliseconds(left) + 1;
      const int ready = left <= absl::ZeroDuration()
                            ? 0
                            : poll(fds.data(), fds.size(),
                                   static_cast<int>(std::min<int64_t>(milliseconds, 1 << 30)));
      if (ready == 0) return absl::DeadlineExceededError("in vain");
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0) return absl::ErrnoToStatus(errno, "poll");
      const bool cancelled = fds.back().revents != 0;
      fds.pop_back();
      return cancelled ? bounds_.cancellation->status() : absl::OkStatus();
    }
  }

  absl::Status AwaitReadable(int fd) const {
    std::vector<pollfd> fds = {{fd, POLLIN, 0}};
    return Await(fds);
  }

  absl::Duration timeout() const { return bounds_.timeout; }

 private:
  const WaitBounds bounds_;
  const absl::Time deadline_;
};

template <typename Message>
absl::Status Send(int socket, const Message& message, const std::vector<int>& descriptors = {}) {
  return SendWithDescriptors(
      socket, absl::string_view(reinterpret_cast<const char*>(&message), sizeof(message)),
      descriptors);
}

// One whole message, which must be there.
template <typename Message>
absl::StatusOr<Message> Receive(int socket, std::vector<Fd>& descriptors) {
  Message message = {};
  ASSIGN_OR_RETURN(const size_t got,
                   ReceiveWithDescriptors(socket, reinterpret_cast<char*>(&message),
                                          sizeof(message), descriptors));
  if (got == sizeof(message)) return message;
  return absl::UnavailableError(got == 0 ? "it has closed its connection" : "it talks nonsense");
}

absl::Status GoneError(int rank, const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " is gone: ", why.message()));
}

// What an answer says.
absl::Status ToStatus(const Answer& answer) {
  switch (static_cast<absl::StatusCode>(answer.code)) {
    case absl::StatusCode::kOk:
      return absl::OkStatus();
    case absl::StatusCode::kPermissionDenied:
      return absl::PermissionDeniedError(
          absl::StrCat("rank ", answer.rank, " does not know this epoch's secret"));
    case absl::StatusCode::kUnavailable:
      return absl::UnavailableError(absl::StrCat("rank ", answer.rank, " is gone"));
    default:
      return absl::UnimplementedError(
          absl::StrCat("rank ", answer.rank, " can't share memory with the others"));
  }
}

// Rank 0's side.
class Host {
 public:
  Host(const GroupInfo& group, Fd bell, const WaitBounds& bounds)
      : group_(group), patience_(bounds), links_(group.size), bells_(group.size) {
    bells_[0] = std::move(bell);
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
    return Meeting{*std::move(segment), std::move(bells_), std::move(links_)};
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
        if (stranger.valid() && IsSameUser(stranger.get())) {
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
  }

  absl::Status HandOut(int memory) {
    Answer answer = verdict_;
    const std::string proof = Proof(group_, invitation_, 0);
    memcpy(answer.proof, proof.data(), sizeof(answer.proof));
    std::vector<int> descriptors;
    if (verdict_.code == 0) {
      descriptors.push_back(memory);
      for (const Fd& bell : bells_) descriptors.push_back(bell.get());
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
  std::vector<Fd> links_, bells_;
  Answer verdict_ = {};
};

// Another rank's side.
class Guest {
 public:
  Guest(const GroupInfo& group, const WaitBounds& bounds) : group_(group), patience_(bounds) {}

  absl::StatusOr<Meeting> Run(KeyExchange& keys, Fd bell, const WaitBounds& bounds) {
    ASSIGN_OR_RETURN(const Invitation invitation, Invite(group_, keys, "", bounds));
    link_ = NewSocket();
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(invitation.socket_name, &length);
    if (connect(link_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      return absl::UnavailableError(absl::StrCat("rank 0 can't be reached: ", strerror(errno)));
    }
    Hello hello = {group_.rank, {}};
    const std::string proof = Proof(group_, invitation, group_.rank);
    memcpy(hello.proof, proof.data(), sizeof(hello.proof));
    const absl::Status sent = Send(link_.get(), hello, {bell.get()});
    if (!sent.ok()) return GoneError(0, sent);
    std::vector<Fd> passed;
    ASSIGN_OR_RETURN(const Answer answer, Hear(passed));
    if (!CheckProof(group_, invitation, 0, {answer.proof, sizeof(answer.proof)})) {
      return absl::PermissionDeniedError("rank 0 does not know this epoch's secret");
    }
    RETURN_IF_ERROR(ToStatus(answer));
    return Enter(std::move(passed));
  }

 private:
  absl::StatusOr<Answer> Hear(std::vector<Fd>& passed) {
    const absl::Status waited = patience_.AwaitReadable(link_.get());
    if (absl::IsDeadlineExceeded(waited)) {
      return absl::DeadlineExceededError("waited in vain for rank 0's answer");
    }
    RETURN_IF_ERROR(waited);
    absl::StatusOr<Answer> answer = Receive<Answer>(link_.get(), passed);
    if (!answer.ok()) return GoneError(0, answer.status());
    return answer;
  }

  absl::StatusOr<Meeting> Enter(std::vector<Fd> passed) {
    // Fewer descriptors come if this process may open no more.
    const bool whole = passed.size() == static_cast<size_t>(group_.size) + 1;
    absl::StatusOr<Segment> segment = Segment::Map(whole ? std::move(passed.front()) : Fd(),
                                                   group_.size, GeometryFor(group_.size));
    const absl::Status sent = Send(link_.get(), Mapped{segment.ok() ? 1 : 0});
    if (!sent.ok()) return GoneError(0, sent);
    std::vector<Fd> none;
    ASSIGN_OR_RETURN(const Answer verdict, Hear(none));
    RETURN_IF_ERROR(ToStatus(verdict));
    passed.erase(passed.begin());
    std::vector<Fd> links;
    links.push_back(std::move(link_));
    return Meeting{*std::move(segment), std::move(passed), std::move(links)};
  }

  const GroupInfo& group_;
  const Patience patience_;
  Fd link_;
};

}  // namespace

absl::StatusOr<Meeting> Meet(const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds) {
  Fd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.valid()) return absl::ErrnoToStatus(errno, "no eventfd");
  if (group.size == 1) {
    ASSIGN_OR_RETURN(Segment segment, Segment::Create(1, GeometryFor(1)));
    std::vector<Fd> bells;
    bells.push_back(std::move(bell));
    return Meeting{std::move(segment), std::move(bells), {}};
  }
  if (group.rank == 0) return Host(group, std::move(bell), bounds).Run(keys, bounds);
  return Guest(group, bounds).Run(keys, std::move(bell), bounds);
}

}  // namespace hvd
