#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "collectives/shm/segment/segment_setup_protocol.h"
#include "collectives/shm/segment/segment_setup_sides.h"

namespace hvd::collectives::shm::segment {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(1);  // between two attempts to connect

class GuestSide {
 public:
  GuestSide(const GroupInfo& group, const WaitBounds& bounds) : group_(group), patience_(bounds) {}

  absl::StatusOr<SegmentSetup> Run(KeyExchange& keys, Fd bell, const WaitBounds& bounds) {
    ASSIGN_OR_RETURN(const Invitation invitation, Invite(group_, keys, "", bounds));
    std::vector<Fd> passed;
    ASSIGN_OR_RETURN(const Answer answer, Introduce(invitation, bell, passed));
    // Before anything of the answer is believed, the error in it included: another process may
    // listen at rank 0's name once rank 0 is gone.
    if (!CheckProof(group_, invitation, 0, {answer.proof, sizeof(answer.proof)})) {
      return absl::PermissionDeniedError("rank 0 does not know this epoch's secret");
    }
    RETURN_IF_ERROR(ToStatus(answer));
    return Enter(std::move(passed));
  }

 private:
  // To make room for others, rank 0 may close the connection that has been silent for longest. That
  // can be a member that was delayed before its Hello. So this rank retries as long as rank 0's
  // socket exists.
  absl::StatusOr<Answer> Introduce(const Invitation& invitation, const Fd& bell,
                                   std::vector<Fd>& passed) {
    absl::Status gone;
    while (true) {
      const int error = Connect(invitation);
      if (error == 0) {
        const absl::Status sent = SayHello(invitation, bell);
        absl::StatusOr<Answer> answer = sent.ok() ? Hear(passed) : GoneError(0, sent);
        if (!absl::IsUnavailable(answer.status())) return answer;
        gone = answer.status();
      } else if (error != EAGAIN) {  // EAGAIN: the queue of pending connections is full
        // Rank 0's socket has been closed. The error of an earlier attempt says more.
        if (!gone.ok()) return gone;
        return absl::UnavailableError(absl::StrCat("rank 0 can't be reached: ", strerror(error)));
      }
      std::vector<pollfd> nobody;
      const absl::Status paused = patience_.Await(nobody, Clock::Real().Now() + kPause);
      if (absl::IsDeadlineExceeded(paused)) return InVain();
      RETURN_IF_ERROR(paused);
    }
  }

  static absl::Status InVain() {
    return absl::DeadlineExceededError("waited in vain for rank 0's answer");
  }

  // Returns 0 or an errno.
  int Connect(const Invitation& invitation) {
    link_ = NewSocket();
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(invitation.socket_name, &length);
    const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
    return connect(link_.get(), generic, length) == 0 ? 0 : errno;
  }

  absl::Status SayHello(const Invitation& invitation, const Fd& bell) {
    Hello hello = {group_.rank, {}};
    const std::string proof = Proof(group_, invitation, group_.rank);
    memcpy(hello.proof, proof.data(), sizeof(hello.proof));
    return Send(link_.get(), hello, {bell.get()});
  }

  absl::StatusOr<Answer> Hear(std::vector<Fd>& passed) {
    const absl::Status waited = patience_.AwaitReadable(link_.get());
    if (absl::IsDeadlineExceeded(waited)) return InVain();
    RETURN_IF_ERROR(waited);
    absl::StatusOr<Answer> answer = Receive<Answer>(link_.get(), passed);
    if (!answer.ok()) return GoneError(0, answer.status());
    return answer;
  }

  absl::StatusOr<SegmentSetup> Enter(std::vector<Fd> passed) {
    // The kernel passes fewer descriptors if this process may not open as many. Then Map fails and
    // rank 0 gets a negative answer, so that all ranks give up together.
    const size_t ranks = static_cast<size_t>(group_.size);
    const bool whole = passed.size() == 1 + ranks || passed.size() == 1 + 2 * ranks;
    absl::StatusOr<Segment> segment = Segment::Map(whole ? std::move(passed.front()) : Fd(),
                                                   group_.size, GeometryFor(group_.size));
    const absl::Status sent = Send(link_.get(), Mapped{segment.ok() ? 1 : 0});
    if (!sent.ok()) return GoneError(0, sent);
    std::vector<Fd> none;
    ASSIGN_OR_RETURN(const Answer verdict, Hear(none));
    RETURN_IF_ERROR(ToStatus(verdict));
    const auto bells = passed.begin() + 1;
    const auto processes = bells + group_.size;
    SegmentSetup setup{*std::move(segment), {}, {}, {}};
    setup.bells.assign(std::make_move_iterator(bells), std::make_move_iterator(processes));
    setup.processes.assign(std::make_move_iterator(processes),
                           std::make_move_iterator(passed.end()));
    setup.links.push_back(std::move(link_));
    return setup;
  }

  const GroupInfo& group_;
  const Patience patience_;
  Fd link_;
};

}  // namespace

absl::StatusOr<SegmentSetup> SetUpAsGuest(const GroupInfo& group, KeyExchange& keys, Fd bell,
                                          const WaitBounds& bounds) {
  return GuestSide(group, bounds).Run(keys, std::move(bell), bounds);
}

}  // namespace hvd::collectives::shm::segment
