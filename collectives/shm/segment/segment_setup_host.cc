#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/net/accept.h"
#include "base/net/peer_source.h"
#include "base/net/strangers.h"
#include "collectives/shm/segment/segment_setup_protocol.h"
#include "collectives/shm/segment/segment_setup_sides.h"

namespace hvd::collectives::shm::segment {
namespace {

constexpr size_t kNameBytes = 16;  // random
// The maximum number of connections that have sent no Hello yet, in addition to one per member.
constexpr size_t kSpareStrangers = 64;
// How long to wait for the true rank after another process has claimed its rank with a wrong proof.
constexpr absl::Duration kClaimTime = absl::Seconds(1);

// The credentials of the process at the other end; an invalid user id if they are not known.
ucred UserOf(int socket) {
  ucred peer = {0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  socklen_t length = sizeof(peer);
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return peer;
}

// A pidfd; invalid for a process that is not visible here, such as one in another container.
Fd OpenProcess(pid_t pid) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

// Rank 0 as a state machine: publish the socket's name, gather all members, hand out the
// descriptors, collect the confirmations, send the result. The first problem of a member is
// recorded in `verdict_` and sent to all members, so that all ranks return the same status.
class HostSide {
 public:
  HostSide(const GroupInfo& group, Fd bell, const WaitBounds& bounds)
      : group_(group),
        patience_(bounds),
        strangers_(kSpareStrangers + static_cast<size_t>(group.size)),
        links_(group.size),
        bells_(group.size),
        processes_(group.size) {
    bells_[0] = std::move(bell);
    processes_[0] = OpenProcess(getpid());
  }

  absl::StatusOr<SegmentSetup> Run(KeyExchange& keys, const WaitBounds& bounds) {
    const std::string name = absl::BytesToHexString(RandomBytes(kNameBytes));
    listener_ = NewSocket();
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(name, &length);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        listen(listener_.get(), SOMAXCONN) != 0) {
      return absl::UnavailableError(
          absl::StrCat("rank 0 can't open its socket: ", strerror(errno)));
    }
    ASSIGN_OR_RETURN(invitation_, Invite(group_, keys, name, bounds));
    RETURN_IF_ERROR(Gather());
    auto segment = Segment::Create(group_.size, GeometryFor(group_.size));
    // The members wait for an answer all the same, and then give up together.
    if (!segment.ok()) Blame(absl::StatusCode::kUnimplemented, 0);
    RETURN_IF_ERROR(HandOut(segment.ok() ? segment->fd() : -1));
    RETURN_IF_ERROR(ToStatus(verdict_));
    RETURN_IF_ERROR(Confirm());
    RETURN_IF_ERROR(ToStatus(verdict_));
    return SegmentSetup{*std::move(segment), std::move(bells_), std::move(links_),
                        std::move(processes_)};
  }

 private:
  using Id = net::Strangers::Id;
  struct Claim {
    Fd link, bell;
  };

  void Blame(absl::StatusCode code, int rank) {
    if (verdict_.code == 0) verdict_ = {static_cast<int32_t>(code), rank, {}};
  }

  absl::Status InVainFor(const std::vector<int>& ranks) const {
    return absl::DeadlineExceededError(
        absl::StrCat("waited ", absl::FormatDuration(patience_.timeout()), " in vain for rank ",
                     absl::StrJoin(ranks, ", rank ")));
  }

  std::vector<int> Missing() const {
    std::vector<int> missing;
    for (int rank = 1; rank < group_.size; ++rank) {
      if (!links_[rank].valid()) missing.push_back(rank);
    }
    return missing;
  }

  // Accepts connections until all members have proved their identity. A Hello with a wrong proof
  // must not take a rank's place: it may come from another process of this user, for example in
  // another container of the same network namespace. It is kept as a claim. If nothing but claims
  // has come for the missing ranks during kClaimTime, they are taken for members with a wrong
  // secret, so that they learn why they are refused.
  absl::Status Gather() {
    while (!Missing().empty()) {
      const absl::Time believed =
          MissingAreClaimed() ? last_claim_ + kClaimTime : absl::InfiniteFuture();
      if (Clock::Real().Now() >= believed) return BelieveClaims();
      const bool rests = Clock::Real().Now() < rests_until_;
      std::vector<pollfd> fds = {{rests ? -1 : listener_.get(), POLLIN, 0}};
      std::vector<Id> polled;
      for (const auto& [id, connection] : silent_) {
        fds.push_back({connection.get(), POLLIN, 0});
        polled.push_back(id);
      }
      const absl::Status waited =
          patience_.Await(fds, std::min(believed, rests ? rests_until_ : absl::InfiniteFuture()));
      if (absl::IsDeadlineExceeded(waited)) return InVainFor(Missing());
      RETURN_IF_ERROR(waited);
      for (size_t i = 0; i < polled.size(); ++i) {
        if (fds[i + 1].revents != 0) Greet(TakeOut(polled[i]));
      }
      if (fds[0].revents != 0) LetIn();
    }
    return absl::OkStatus();
  }

  void LetIn() {
    net::Accepted accepted = net::Accept(listener_.get());
    if (accepted.out_of_files) return MakeRoom();
    if (!accepted.connection.valid() || UserOf(accepted.connection.get()).uid != geteuid()) return;
    const Id id = strangers_.Add(net::PeerSource(accepted.connection.get()));
    silent_.emplace(id, std::move(accepted.connection));
    while (const std::optional<Id> surplus = strangers_.Surplus()) TakeOut(*surplus);
  }

  void MakeRoom() {
    const std::optional<Id> gone = strangers_.LeastLikelyMember();
    if (gone.has_value()) {
      TakeOut(*gone);
    } else {
      rests_until_ = Clock::Real().Now() + net::kAcceptPause;
    }
  }

  Fd TakeOut(Id id) {
    const auto found = silent_.find(id);
    Fd connection = std::move(found->second);
    silent_.erase(found);
    strangers_.Remove(id);
    return connection;
  }

  // A Hello is one message: no stranger has sent a part of it.
  void Greet(Fd stranger) {
    std::vector<Fd> passed;
    const absl::StatusOr<Hello> hello = Receive<Hello>(stranger.get(), passed);
    const bool makes_sense = hello.ok() && passed.size() == 1 && hello->rank > 0 &&
                             hello->rank < group_.size && !links_[hello->rank].valid();
    if (!makes_sense) return;
    const absl::string_view proof(hello->proof, sizeof(hello->proof));
    if (CheckProof(group_, invitation_, hello->rank, proof)) {
      return Seat(hello->rank, {std::move(stranger), std::move(passed.front())});
    }
    claims_[hello->rank] = {std::move(stranger), std::move(passed.front())};
    last_claim_ = Clock::Real().Now();
  }

  void Seat(int rank, Claim claim) {
    processes_[rank] = OpenProcess(UserOf(claim.link.get()).pid);
    links_[rank] = std::move(claim.link);
    bells_[rank] = std::move(claim.bell);
  }

  bool MissingAreClaimed() const {
    const std::vector<int> missing = Missing();
    return std::all_of(missing.begin(), missing.end(),
                       [this](int rank) { return claims_.count(rank) > 0; });
  }

  absl::Status BelieveClaims() {
    for (const int rank : Missing()) {
      Blame(absl::StatusCode::kPermissionDenied, rank);
      Seat(rank, std::move(claims_.at(rank)));
    }
    return absl::OkStatus();
  }

  // Hands out the pidfds of all processes or none: an array of passed descriptors can't have gaps,
  // and one message takes a limited number of them.
  void ChooseProcesses() {
    const bool all = std::all_of(processes_.begin(), processes_.end(),
                                 [](const Fd& process) { return process.valid(); });
    if (!all || 1 + bells_.size() + processes_.size() > net::kMostPassedDescriptors)
      processes_.clear();
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
    return SendToAll(answer, descriptors);
  }

  absl::Status Confirm() {
    for (int rank = 1; rank < group_.size; ++rank) {
      const absl::Status waited = patience_.AwaitReadable(links_[rank].get());
      if (absl::IsDeadlineExceeded(waited)) return InVainFor({rank});
      RETURN_IF_ERROR(waited);
      std::vector<Fd> none;
      const absl::StatusOr<Mapped> mapped = Receive<Mapped>(links_[rank].get(), none);
      if (!mapped.ok()) Blame(absl::StatusCode::kUnavailable, rank);
      if (mapped.ok() && mapped->ok == 0) Blame(absl::StatusCode::kUnimplemented, rank);
    }
    return SendToAll(verdict_, {});
  }

  absl::Status SendToAll(const Answer& answer, const std::vector<int>& descriptors) {
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
  absl::Time rests_until_ = absl::InfinitePast();  // accepts nothing until then: out of descriptors
  net::Strangers strangers_;                       // connections without a Hello
  std::map<Id, Fd> silent_;                        // of strangers_
  std::map<int, Claim> claims_;                    // by rank: Hellos with a wrong proof
  absl::Time last_claim_ = absl::InfinitePast();
  std::vector<Fd> links_, bells_, processes_;
  Answer verdict_ = {};
};

}  // namespace

absl::StatusOr<SegmentSetup> SetUpAsHost(const GroupInfo& group, KeyExchange& keys, Fd bell,
                                         const WaitBounds& bounds) {
  return HostSide(group, std::move(bell), bounds).Run(keys, bounds);
}

}  // namespace hvd::collectives::shm::segment
