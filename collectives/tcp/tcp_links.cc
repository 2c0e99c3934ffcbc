#include "collectives/tcp/tcp_links.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/links/patience.h"

namespace hvd::collectives::tcp {
namespace {

// How long a wait polls before it sleeps: longer than a message takes between two hosts of a
// cluster, and about what going to sleep and waking up costs.
constexpr absl::Duration kPollFor = absl::Microseconds(50);

// How long a peer has to read what comes before the last message.
constexpr absl::Duration kLinger = absl::Milliseconds(50);

void SortOnce(std::vector<int>& ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

absl::Status Gone(absl::string_view ranks, absl::string_view tampering) {
  const std::string text = absl::StrCat("rank ", ranks, " is gone", tampering);
  return tampering.empty() ? absl::UnavailableError(text) : absl::DataLossError(text);
}

}  // namespace

class TcpRegion : public links::Region {
 public:
  TcpRegion(TcpLinks& links, char* data) : links_(links), data_(data) {}

  ~TcpRegion() override {
    if (sent_.started != sent_.awaited || received_.started != received_.awaited) links_.Abandon();
  }

  absl::Status Send(int peer, size_t offset, size_t bytes) override {
    if (links_.broken()) return links_.status();
    absl::MutexLock lock(&links_.io_mutex_);
    links_.links_[peer]->Send(data_ + offset, bytes, &sent_.completed);
    ++sent_.started;
    links_.SetBusy(peer);
    return absl::OkStatus();
  }

  absl::Status Receive(int peer, size_t offset, size_t bytes) override {
    if (links_.broken()) return links_.status();
    absl::MutexLock lock(&links_.io_mutex_);
    links_.links_[peer]->Receive(data_ + offset, bytes, &received_.completed);
    ++received_.started;
    links_.SetBusy(peer);
    return absl::OkStatus();
  }

  absl::Status AwaitSent(int peer, absl::Duration timeout) override {
    return Await(sent_, peer, " took no data in time", timeout);
  }

  absl::Status AwaitReceived(int peer, absl::Duration timeout) override {
    return Await(received_, peer, " sent no data in time", timeout);
  }

 private:
  struct Messages {
    size_t started = 0;
    size_t completed = 0;  // by the links, with their lock held
    size_t awaited = 0;
  };

  absl::Status Await(Messages& messages, int peer, absl::string_view late, absl::Duration timeout) {
    const absl::Status done = links_.Await(messages.completed, messages.awaited, timeout);
    if (absl::IsDeadlineExceeded(done)) {
      // If the links have broken, their reason is more precise.
      if (links_.broken()) return links_.status();
      return absl::DeadlineExceededError(absl::StrCat("rank ", peer, late));
    }
    if (done.ok()) ++messages.awaited;
    return done;
  }

  TcpLinks& links_;
  char* const data_;
  Messages sent_, received_;
};

TcpLinks::TcpLinks(std::unique_ptr<TcpMesh> mesh, const SplitRule& rule)
    : Links(mesh->group().rank, mesh->group().size),
      mesh_(std::move(mesh)),
      rule_(rule),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      links_(size()),
      is_busy_(size(), false),
      is_linked_(size(), false),
      review_(*this, rule) {
  is_linked_[rank()] = true;
}

// The port's thread stops using the links first. If it is just breaking them, what EndWaits has
// posted is not done.
TcpLinks::~TcpLinks() {
  mesh_->loop().End();
  absl::MutexLock lock(&io_mutex_);
  for (const auto& link : links_) {
    if (link == nullptr) continue;
    if (broken()) {
      link->SayGaveUp(cause_);
      link->ResetIfBlocked();
    } else {
      link->SayGoodbye();
    }
  }
}

std::unique_ptr<links::Region> TcpLinks::MakeRegion(void* data, size_t bytes) {
  return std::make_unique<TcpRegion>(*this, static_cast<char*>(data));
}

absl::Status TcpLinks::Connect(absl::Span<const int> peers, absl::Duration timeout,
                               const Cancellation* cancellation) {
  if (cancellation == nullptr) cancellation = &break_cancellation();
  std::vector<int> linked, missing;
  for (const int peer : peers) {
    if (peer != rank()) (is_linked_[peer] ? linked : missing).push_back(peer);
  }
  SortOnce(linked);
  RETURN_IF_ERROR(review_.Run(linked, timeout, cancellation));
  if (missing.empty()) return absl::OkStatus();
  SortOnce(missing);
  RETURN_IF_ERROR(status());
  absl::StatusOr<std::vector<net::Wire>> wires =
      mesh_->Connect(missing, Clock::Real().Now() + timeout, cancellation);
  RETURN_IF_ERROR(status());
  RETURN_IF_ERROR(wires.status());
  return Register(missing, *std::move(wires));
}

absl::Status TcpLinks::Register(const std::vector<int>& peers, std::vector<net::Wire> wires) {
  absl::MutexLock lock(&io_mutex_);
  // If the links have broken meanwhile, nobody would close these connections.
  if (broken()) return status();
  for (size_t i = 0; i < peers.size(); ++i) {
    const int peer = peers[i];
    const int fd = wires[i].fd();
    links_[peer] = std::make_unique<PeerLink>(std::move(wires[i]), rule_.large_bytes);
    is_linked_[peer] = true;
    mesh_->loop().Post([this, peer, fd] { WatchForHangUp(peer, fd); });
  }
  return absl::OkStatus();
}

absl::Status TcpLinks::AddConnections(int peer, std::vector<net::Wire> further) {
  absl::MutexLock lock(&io_mutex_);
  if (broken()) return status();  // as in Register
  for (const net::Wire& wire : further) {
    mesh_->loop().Post([this, peer, fd = wire.fd()] { WatchForHangUp(peer, fd); });
  }
  links_[peer]->AddConnections(std::move(further));
  return absl::OkStatus();
}

uint64_t TcpLinks::LargeBytesStarted(int peer) {
  absl::MutexLock lock(&io_mutex_);
  return links_[peer]->large_bytes_started();
}

SendPace TcpLinks::TakePace(int peer) {
  absl::MutexLock lock(&io_mutex_);
  return links_[peer]->TakePace();
}

size_t TcpLinks::ConnectionsTo(int peer) {
  absl::MutexLock lock(&io_mutex_);
  return links_[peer]->connections();
}

bool TcpLinks::IsWhole(int peer) {
  absl::MutexLock lock(&io_mutex_);
  return links_[peer]->IsWhole();
}

void TcpLinks::SplitLarge(int peer, bool split) {
  absl::MutexLock lock(&io_mutex_);
  links_[peer]->SplitLarge(split);
}

void TcpLinks::SetBusy(int peer) {
  if (!is_busy_[peer]) busy_.push_back(peer);
  is_busy_[peer] = true;
}

bool TcpLinks::Advance() {
  bool moved = false;
  for (size_t i = 0; i < busy_.size();) {
    PeerLink& link = *links_[busy_[i]];
    moved |= link.Advance();
    has_end_ |= link.end() != SocketLink::End::kOpen;
    if (link.wants_to_move() || link.is_stuck()) {
      ++i;
      continue;
    }
    is_busy_[busy_[i]] = false;
    busy_[i] = busy_.back();
    busy_.pop_back();
  }
  return moved;
}

bool TcpLinks::AdvanceUntil(const size_t& completed, size_t awaited, bool* moved,
                            Failure* failure) {
  absl::MutexLock lock(&io_mutex_);
  // Broken links move nothing: the memory of their messages may be gone.
  if (broken()) return false;
  if (completed > awaited) return true;
  *moved = Advance();
  if (*moved) CountMove();
  if (completed > awaited) return true;
  if (has_end_) *failure = FindFailure();
  return false;
}

absl::Status TcpLinks::Await(const size_t& completed, size_t awaited, absl::Duration timeout) {
  links::Patience patience(timeout);
  absl::Time poll_until = absl::InfinitePast();
  bool drained = false;
  while (true) {
    bool moved = false;
    Failure failure;
    if (AdvanceUntil(completed, awaited, &moved, &failure)) return absl::OkStatus();
    if (!failure.why.ok()) Break(failure.why, failure.cause);
    if (broken()) return status();
    const absl::Time now = Clock::Real().Now();
    if (patience.IsOver(now, moved || drained)) return absl::DeadlineExceededError("");
    drained = false;
    if (moved || poll_until == absl::InfinitePast()) poll_until = now + kPollFor;
    if (now < poll_until) {
      sched_yield();  // a peer may be on this machine
    } else {
      drained = !Sleep(completed, awaited, patience.UntilNextLook(now)) && HasDrained();
      poll_until = absl::InfinitePast();
    }
  }
}

bool TcpLinks::Sleep(const size_t& completed, size_t awaited, absl::Duration most) {
  polled_.assign(1, {wake_.get(), POLLIN, 0});
  {
    absl::MutexLock lock(&io_mutex_);
    // The port's thread may have read the message just now, as one of the last before a hang-up. If
    // it does so later, the hang-up ends the sleep.
    if (completed > awaited) return true;
    for (const int peer : busy_) links_[peer]->AppendPolled(polled_);
  }
  const timespec timeout = absl::ToTimespec(std::min(most, absl::Hours(1)));
  return ppoll(polled_.data(), polled_.size(), &timeout, nullptr) != 0;
}

// The kernel tells nobody when it sends what it has taken, which may be some MiB.
bool TcpLinks::HasDrained() {
  absl::MutexLock lock(&io_mutex_);
  uint64_t unacknowledged = 0;
  for (const auto& link : links_) {
    if (link != nullptr) unacknowledged += link->Unacknowledged();
  }
  const bool drained = unacknowledged != std::exchange(unacknowledged_, unacknowledged);
  if (drained) CountMove();
  return drained;
}

void TcpLinks::Abandon() {
  absl::MutexLock lock(&io_mutex_);
  for (const int peer : busy_) {
    links_[peer]->Abandon();
    is_busy_[peer] = false;
  }
  busy_.clear();
}

void TcpLinks::EndWaits(int cause) {
  cause_ = cause;
  (void)eventfd_write(wake_.get(), 1);
  mesh_->loop().Post([this, cause] { SayGaveUp(cause); });
}

// In the order of precision: a last message that names the cause; peers whose connections broke
// without a last message, as those of processes that were killed; a peer that has left although
// this rank still waits for it.
TcpLinks::Failure TcpLinks::FindFailure() {
  using End = SocketLink::End;
  const Failure lost = FindLost();
  for (int peer = 0; peer < size(); ++peer) {
    const PeerLink* link = links_[peer].get();
    if (link == nullptr || link->end() != End::kGaveUp) continue;
    const int cause = link->cause();
    // This rank passes the cause on, so a number that is no rank would go around the group.
    if (cause >= size()) {
      return {absl::DataLossError(absl::StrCat("rank ", peer, " gave up because of rank ", cause,
                                               ", but there are ", size(), " ranks")),
              peer};
    }
    if (cause == peer) return {Gone(absl::StrCat(peer), ""), cause};
    // Of several connections one is lost, and the peer has seen it first: the same as with one.
    if (cause == rank()) links_[peer]->ReadHangUps();
    if (cause == rank() && link->HasLost()) {
      return {Gone(absl::StrCat(peer), TamperingWith(peer)), peer};
    }
    return {absl::UnavailableError(absl::StrCat("rank ", peer, " gave up because of rank ", cause)),
            cause};
  }
  if (!lost.why.ok()) return lost;
  for (const int peer : busy_) {
    const PeerLink& link = *links_[peer];
    if (link.end() == End::kMalformed) {
      return {absl::DataLossError(
                  absl::StrCat("the message of rank ", peer, " is not of the expected length")),
              rank()};
    }
    if (link.is_stuck()) return {Gone(absl::StrCat(peer), ""), peer};
  }
  return {};
}

TcpLinks::Failure TcpLinks::FindLost() {
  const auto is_lost = [](const std::unique_ptr<PeerLink>& link) {
    return link != nullptr && link->end() == SocketLink::End::kLost;
  };
  if (!std::any_of(links_.begin(), links_.end(), is_lost)) return {};
  // Another peer may have sent the cause by now, or be gone, too.
  ReadHangUps();
  std::vector<int> lost;
  std::string why;
  for (int peer = 0; peer < size(); ++peer) {
    if (!is_lost(links_[peer])) continue;
    lost.push_back(peer);
    const std::string tampering = TamperingWith(peer);
    if (!tampering.empty()) why = tampering;
  }
  // A peer whose last message has come over another connection is not lost.
  if (lost.empty()) return {};
  return {Gone(absl::StrJoin(lost, ", "), why), lost.front()};
}

std::string TcpLinks::TamperingWith(int peer) const {
  const std::string tampering = links_[peer]->Tampering();
  return tampering.empty() ? "" : absl::StrCat("; rank ", peer, ": ", tampering);
}

std::optional<int> TcpLinks::FindUnreached() {
  absl::MutexLock lock(&io_mutex_);
  for (int peer = 0; peer < size(); ++peer) {
    if (links_[peer] != nullptr && links_[peer]->IsSilent()) return peer;
  }
  return std::nullopt;
}

void TcpLinks::ReadHangUps() {
  for (const auto& link : links_) {
    if (link != nullptr) link->ReadHangUps();
  }
}

void TcpLinks::WatchForHangUp(int peer, int fd) {
  // Without a watch (no memory in the kernel) the peer's end is noticed when something is exchanged
  // with it.
  (void)mesh_->loop().Watch(fd, EPOLLRDHUP, [this, peer, fd](uint32_t) { OnHangUp(peer, fd); });
}

void TcpLinks::OnHangUp(int peer, int fd) {
  mesh_->loop().Forget(fd);
  Failure failure;
  {
    absl::MutexLock lock(&io_mutex_);
    if (broken()) return;
    links_[peer]->ReadToEnd(fd);
    has_end_ |= links_[peer]->end() != SocketLink::End::kOpen;
    failure = FindFailure();
  }
  if (!failure.why.ok()) Break(failure.why, failure.cause);
}

// A peer that sees only the end of the connection knows that this rank is gone, not which rank has
// caused it. So the last message comes first.
void TcpLinks::SayGaveUp(int cause) {
  mesh_->Drop();
  absl::MutexLock lock(&io_mutex_);
  for (const auto& link : links_) {
    if (link != nullptr) link->SayGaveUp(cause);
  }
  mesh_->loop().After(kLinger, [this] { ResetBlocked(); });
}

void TcpLinks::ResetBlocked() {
  absl::MutexLock lock(&io_mutex_);
  for (const auto& link : links_) {
    if (link == nullptr) continue;
    for (const int fd : link->fds()) mesh_->loop().Forget(fd);
    link->ResetIfBlocked();
  }
}

}  // namespace hvd::collectives::tcp
