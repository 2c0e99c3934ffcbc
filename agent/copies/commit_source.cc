#include "agent/copies/commit_source.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/net/address.h"
#include "base/net/tcp_socket.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"

namespace hvd::agent::copies {
namespace {

// The interval of checks for a newer commit while a keeper waits for one.
constexpr absl::Duration kScanInterval = absl::Milliseconds(20);
// How long a peer may take to authenticate itself: as long as a keeper tries. And the number of
// peers at each stage of it; a keeper that was sent away connects again.
constexpr absl::Duration kHandshakeTime = Channel::kPatience;
constexpr size_t kMostStrangers = 128;

// The kernel paces the packets (SO_MAX_PACING_RATE), so there are no bursts that would delay the
// traffic of training.
void BoundRate(int fd, uint64_t bytes_per_second) {
  // An error is ignored: without the bound, copies are only less polite.
  setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, sizeof(bytes_per_second));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommitSource>> CommitSource::Open(const std::string& address,
                                                                 Trust trust,
                                                                 size_t bytes_per_second) {
  // Only reserved: the address is part of the agent's hello, and nobody connects before the
  // daemon's welcome, which says whether the job is elastic.
  ASSIGN_OR_RETURN(Fd listener, net::ReserveAnyPort(address));
  ASSIGN_OR_RETURN(const int port, net::PortOf(listener.get()));
  return std::unique_ptr<CommitSource>(
      new CommitSource(std::move(listener), net::JoinHostPort(address, absl::StrCat(port)),
                       std::move(trust), bytes_per_second));
}

CommitSource::CommitSource(Fd listener, std::string address, Trust trust, size_t bytes_per_second)
    : listener_(std::move(listener)),
      address_(std::move(address)),
      trust_(std::move(trust)),
      bytes_per_second_(bytes_per_second) {}

CommitSource::~CommitSource() {
  ending_.Cancel(absl::CancelledError("the agent ends"));
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  if (accepting_.joinable()) {
    loop_->Post([this] { loop_->Stop(); });
    accepting_.join();
  }
  if (serving_.joinable()) serving_.join();
}

absl::Status CommitSource::Begin(const std::string& job) {
  if (listen(listener_.get(), SOMAXCONN) != 0) {
    return absl::UnavailableError(absl::StrCat("listen: ", strerror(errno)));
  }
  job_ = job;
  ASSIGN_OR_RETURN(loop_, EventLoop::Create());
  keepers_ = std::make_unique<net::peer::PeerListener>(
      *loop_, std::move(listener_), trust_.tls,
      [this](std::string binding) {
        return MakeTokenHandshake(trust_, net::TlsEnd::kAccepts, std::move(binding));
      },
      net::peer::StrangerBounds{kMostStrangers, kHandshakeTime},
      [this](net::Wire keeper, const net::peer::PeerId&) { Welcome(std::move(keeper)); });
  RETURN_IF_ERROR(keepers_->Begin());
  accepting_ = StartSignalFreeThread([this] {
    RunInBackground();
    loop_->Run();
  });
  serving_ = StartSignalFreeThread([this] { Serve(); });
  return absl::OkStatus();
}

void CommitSource::Offer(int arena) {
  absl::MutexLock lock(&mutex_);
  if (arenas_.count(arena) > 0) return;
  // A descriptor of its own, since the caller may close `arena` at any time.
  Fd own(fcntl(arena, F_DUPFD_CLOEXEC, 0));
  if (own.valid()) arenas_[arena] = std::make_unique<ArenaView>(std::move(own), job_);
}

void CommitSource::Welcome(net::Wire keeper) {
  BoundRate(keeper.fd(), bytes_per_second_);
  net::TuneForMessages(keeper.fd()).IgnoreError();
  absl::MutexLock lock(&mutex_);
  // Replaces a keeper that waits: the newest one is the one that the daemon wants.
  next_ = std::make_unique<Channel>(std::move(keeper), ending_);
}

void CommitSource::Serve() {
  RunInBackground();
  while (const std::unique_ptr<Channel> keeper = AwaitKeeper()) {
    Answer(*keeper).IgnoreError();  // the keeper connects again
  }
}

std::unique_ptr<Channel> CommitSource::AwaitKeeper() {
  absl::MutexLock lock(&mutex_);
  const auto is_there = [this]()
                            ABSL_NO_THREAD_SAFETY_ANALYSIS { return next_ != nullptr || ended_; };
  mutex_.Await(absl::Condition(&is_there));
  return ended_ ? nullptr : std::move(next_);
}

absl::Status CommitSource::Answer(Channel& channel) {
  while (true) {
    RETURN_IF_ERROR(AwaitRequest(channel));
    std::string request(sizeof(uint64_t), '\0');
    RETURN_IF_ERROR(channel.Receive(request.data(), request.size()));
    RETURN_IF_ERROR(SendNewest(channel, DecodeNumber(request)));
  }
}

// A keeper asks again as soon as it has a commit. One whose host is gone stays silent, and nobody
// tells: it must not hold up the keeper that has taken its place.
absl::Status CommitSource::AwaitRequest(Channel& channel) {
  absl::Status asked;
  while (absl::IsDeadlineExceeded(asked = channel.AwaitBytes(kScanInterval))) {
    if (SomebodyWaits()) return absl::AbortedError("another keeper has come");
  }
  return asked;
}

absl::Status CommitSource::SendNewest(Channel& channel, uint64_t known) {
  ArenaView::Commit commit;
  ArenaView* view = nullptr;
  absl::StatusOr<absl::string_view> contents;
  do {
    while ((view = FindNewer(known, &commit)) == nullptr) {
      RETURN_IF_ERROR(channel.Pause(kScanInterval));
      if (SomebodyWaits()) return absl::AbortedError("another keeper has come");
    }
    contents = view->Read(commit);
  } while (absl::IsAborted(contents.status()));  // the commit was replaced in between
  RETURN_IF_ERROR(contents.status());
  // Outside of the lock, since sending takes long. Views are never removed from arenas_, so `view`
  // stays valid.
  absl::Status sent = channel.Send(CopyHead{commit.number, commit.size, commit.checksum}.Encoded());
  sent.Update(FAILPOINT_STATUS("agent.source.head_sent"));
  if (sent.ok()) sent = channel.Send(*contents);
  FAILPOINT("agent.source.sent");
  view->Release();
  return sent;
}

CommitSource::ArenaView* CommitSource::FindNewer(uint64_t known, ArenaView::Commit* newest) {
  absl::MutexLock lock(&mutex_);
  ArenaView* found = nullptr;
  for (const auto& [fd, view] : arenas_) {
    const auto commit = view->Newest();
    if (!commit.has_value() || commit->number <= known) continue;
    if (found != nullptr && commit->number <= newest->number) continue;
    found = view.get();
    *newest = *commit;
  }
  return found;
}

bool CommitSource::SomebodyWaits() {
  absl::MutexLock lock(&mutex_);
  return next_ != nullptr;
}

}  // namespace hvd::agent::copies
