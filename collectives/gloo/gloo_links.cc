#include "collectives/gloo/gloo_links.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "collectives/gloo/gloo_glue.h"
#include "gloo/transport/pair.h"

namespace hvd::collectives::gloo {
namespace {

// Gloo's tags for independent sequences of messages between two ranks. Nothing is ever sent on
// kProbeSlot; see FindLost.
enum Slot : uint64_t { kDataSlot = 1, kSentinelSlot = 2, kProbeSlot = 3 };

}  // namespace

class GlooRegion : public links::Region {
 public:
  GlooRegion(GlooLinks& links, void* data, size_t bytes)
      : links_(links), buffer_(links.context_->createUnboundBuffer(data, bytes)) {
    absl::MutexLock lock(&links_.mutex_);
    links_.waiting_.push_back(buffer_.get());
  }

  ~GlooRegion() override {
    absl::MutexLock lock(&links_.mutex_);
    auto& all = links_.waiting_;
    all.erase(std::find(all.begin(), all.end(), buffer_.get()));
  }

  absl::Status Send(int peer, size_t offset, size_t bytes) override {
    RETURN_IF_ERROR(links_.status());
    ScopedSigpipeBlock no_sigpipe;
    return links_.Explain(GlooCall([&] { buffer_->send(peer, kDataSlot, offset, bytes); }));
  }

  absl::Status Receive(int peer, size_t offset, size_t bytes) override {
    RETURN_IF_ERROR(links_.status());
    ScopedSigpipeBlock no_sigpipe;
    return links_.Explain(GlooCall([&] { buffer_->recv(peer, kDataSlot, offset, bytes); }));
  }

  absl::Status AwaitSent(int peer, absl::Duration timeout) override {
    return Await(true, peer, timeout);
  }

  absl::Status AwaitReceived(int peer, absl::Duration timeout) override {
    return Await(false, peer, timeout);
  }

 private:
  // Gloo tells of whole messages only, so a message may take the timeout.
  absl::Status Await(bool sent, int peer, absl::Duration timeout) {
    RETURN_IF_ERROR(links_.status());
    const absl::Time deadline = Clock::Real().Now() + timeout;
    const auto limit = GlooTimeout(timeout);
    bool completed = false;
    const absl::Status waited =
        GlooCall([&] { completed = sent ? buffer_->waitSend(limit) : buffer_->waitRecv(limit); });
    if (waited.ok() && completed) {
      links_.CountMove();
      return waited;
    }
    // The clock is checked before Explain(): Gloo reports an expired timeout as an exception, too,
    // which Explain() would take for a lost peer.
    if (Clock::Real().Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", peer, sent ? " took" : " sent", " no data in time"));
    }
    if (!waited.ok()) return links_.Explain(waited);
    RETURN_IF_ERROR(links_.status());
    return absl::InternalError("a wait was interrupted for no reason");
  }

  GlooLinks& links_;
  const std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
};

GlooLinks::GlooLinks(std::shared_ptr<::gloo::transport::Context> context, int rank, int size)
    : Links(rank, size),
      context_(std::move(context)),
      landing_(size, kNothing),
      sentinel_(context_->createUnboundBuffer(landing_.data(), size * sizeof(LastWord))),
      words_(size, kNothing) {}

absl::Status GlooLinks::Begin() {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const absl::Status posted = GlooCall(
        [&] { sentinel_->recv(peer, kSentinelSlot, peer * sizeof(LastWord), sizeof(LastWord)); });
    if (!posted.ok()) {
      return absl::Status(posted.code(), absl::StrCat("rank ", peer, ": ", posted.message()));
    }
  }
  watcher_ = StartSignalFreeThread([this] { Watch(); });
  return absl::OkStatus();
}

GlooLinks::~GlooLinks() {
  ScopedSigpipeBlock no_sigpipe;
  if (!broken()) {
    SayLastWord(kGoodbye);
    sentinel_->abortWaitRecv();
  }
  if (watcher_.joinable()) watcher_.join();
}

std::unique_ptr<links::Region> GlooLinks::MakeRegion(void* data, size_t bytes) {
  return std::make_unique<GlooRegion>(*this, data, bytes);
}

void GlooLinks::EndWaits(int cause) {
  absl::MutexLock lock(&mutex_);
  cause_ = cause;
  // Calling Gloo with the mutex held can't deadlock: these calls only set flags and notify, and
  // Gloo never calls this class.
  for (auto* buffer : waiting_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
  sentinel_->abortWaitRecv();
}

absl::Status GlooLinks::Explain(const absl::Status& from_gloo) {
  if (from_gloo.ok()) return from_gloo;
  if (!broken()) BreakOverPeers(from_gloo);
  return status();
}

// The order at the end matters: a peer that sees its connection close first would only know that
// this rank is gone, not which rank has caused it.
void GlooLinks::Watch() {
  while (WatchOnce()) {
  }
  if (!broken()) return;  // leaving in good order
  int cause = -1;
  {
    absl::MutexLock lock(&mutex_);
    cause = cause_;
  }
  SayLastWord(1 + cause);
  CloseConnections();
}

bool GlooLinks::WatchOnce() {
  bool answered = false;
  int peer = -1;
  const absl::Status waited = GlooCall(
      [&] { answered = sentinel_->waitRecv(&peer, GlooTimeout(absl::InfiniteDuration())); });
  if (waited.ok() && !answered) return false;  // interrupted: leaving, or broken already
  if (answered) {
    absl::MutexLock lock(&mutex_);
    words_[peer] = landing_[peer];
    // A goodbye alone is no failure: this rank may not need that peer any more.
    if (words_[peer] == kGoodbye) return true;
  }
  if (!broken()) BreakOverPeers(waited);
  return false;
}

GlooLinks::LastWord GlooLinks::WordOf(int peer) const {
  absl::ReaderMutexLock lock(&mutex_);
  return words_[peer];
}

// Finds the cause, in the order of precision: a last message that names it; a peer whose connection
// broke without a last message, as that of a process that was killed; a peer that left cleanly
// although this rank still waits for it; otherwise only Gloo's error is known.
void GlooLinks::BreakOverPeers(const absl::Status& waited) {
  std::vector<int> left;
  for (int peer = 0; peer < size(); ++peer) {
    const LastWord word = WordOf(peer);
    if (word == kGoodbye) left.push_back(peer);
    if (word <= 0) continue;
    const int cause = word - 1;
    return Break(
        absl::UnavailableError(
            cause == peer ? absl::StrCat("rank ", peer, " is gone")
                          : absl::StrCat("rank ", peer, " gave up because of rank ", cause)),
        cause);
  }
  const std::vector<int> lost = FindLost();
  const std::vector<int>& gone = lost.empty() ? left : lost;
  if (gone.empty()) return Break(waited, rank());
  Break(absl::UnavailableError(absl::StrCat("rank ", absl::StrJoin(gone, ", "), " is gone")),
        gone.front());
}

std::vector<int> GlooLinks::FindLost() {
  std::vector<int> lost;
  const auto probe = context_->createUnboundBuffer(nullptr, 0);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || WordOf(peer) != kNothing) continue;
    // A receive on a broken connection throws at once. On an intact one it has no effect, since
    // nothing is sent on kProbeSlot.
    if (!GlooCall([&] { probe->recv(peer, kProbeSlot, 0, 0); }).ok()) lost.push_back(peer);
  }
  return lost;
}

// Best effort: if a socket's buffer is full, the peer only sees the connection close.
void GlooLinks::SayLastWord(LastWord word) {
  const auto buffer = context_->createUnboundBuffer(&word, sizeof(word));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    (void)GlooCall([&] { buffer->send(peer, kSentinelSlot, 0, sizeof(word)); });
  }
}

void GlooLinks::CloseConnections() {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) (void)GlooCall([&] { context_->getPair(peer)->close(); });
  }
}

}  // namespace hvd::collectives::gloo
