#include "collectives/shm/segment/segment_setup_protocol.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"

namespace hvd::collectives::shm::segment {
namespace {

ProofSubject SubjectOf(const GroupInfo& group, const Invitation& invitation, int from) {
  return {"shm", group.epoch, group.size, from, kEveryRank, invitation.transcript};
}

}  // namespace

// Each rank contributes a fresh nonce, and the transcript consists of all values, each with its
// length in front. So a proof over the transcript can't be replayed in another setup.
absl::StatusOr<Invitation> Invite(const GroupInfo& group, KeyExchange& keys,
                                  const std::string& socket_name, const WaitBounds& bounds) {
  const std::string value = absl::StrCat(socket_name, MakeNonce());
  ASSIGN_OR_RETURN(const std::vector<std::string> values,
                   keys.AllGather("shm", value, bounds.timeout));
  // The values come through the daemon, which does not check them.
  if (values.size() != static_cast<size_t>(group.size) || values[0].size() < kNonceBytes) {
    return absl::InternalError("the key exchange has not returned one valid value per rank");
  }
  return Invitation{values[0].substr(0, values[0].size() - kNonceBytes),
                    absl::StrJoin(values, "", [](std::string* out, const std::string& value) {
                      absl::StrAppend(out, value.size(), ":", value);
                    })};
}

std::string Proof(const GroupInfo& group, const Invitation& invitation, int from) {
  return MakeProof(group.secret, SubjectOf(group, invitation, from));
}

bool CheckProof(const GroupInfo& group, const Invitation& invitation, int from,
                absl::string_view proof) {
  return collectives::CheckProof(group.secret, SubjectOf(group, invitation, from), proof);
}

sockaddr_un AddressOf(absl::string_view name, socklen_t* length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // A leading zero byte makes the address abstract: it is in no file system and vanishes with the
  // socket.
  memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof(address.sun_path) - 1));
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

// SOCK_SEQPACKET preserves message boundaries, so a message arrives as a whole or not at all.
Fd NewSocket() { return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

Patience::Patience(const WaitBounds& bounds)
    : bounds_(bounds), deadline_(Clock::Real().Now() + bounds.timeout) {}

absl::Status Patience::Await(std::vector<pollfd>& fds, absl::Time look_again) const {
  fds.push_back({bounds_.cancellation == nullptr ? -1 : bounds_.cancellation->fd(), POLLIN, 0});
  while (true) {
    const absl::Duration left = std::min(deadline_, look_again) - Clock::Real().Now();
    const int64_t milliseconds = absl::ToInt64Milliseconds(left) + 1;
    const int ready = left <= absl::ZeroDuration()
                          ? 0
                          : poll(fds.data(), fds.size(),
                                 static_cast<int>(std::min<int64_t>(milliseconds, 1 << 30)));
    // The caller's list is left as it was, without the cancellation, since the caller waits again.
    if (ready == 0 && look_again < deadline_) fds.pop_back();
    if (ready == 0) {
      return look_again < deadline_ ? absl::OkStatus() : absl::DeadlineExceededError("in vain");
    }
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return absl::ErrnoToStatus(errno, "poll");
    const bool cancelled = fds.back().revents != 0;
    fds.pop_back();
    return cancelled ? bounds_.cancellation->status() : absl::OkStatus();
  }
}

absl::Status Patience::AwaitReadable(int fd) const {
  std::vector<pollfd> fds = {{fd, POLLIN, 0}};
  return Await(fds);
}

absl::Status GoneError(int rank, const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " is gone: ", why.message()));
}

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

}  // namespace hvd::collectives::shm::segment
