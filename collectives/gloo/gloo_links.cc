#include "collectives/gloo/gloo_links.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "collectives/gloo/guarded_transport.h"
#include "collectives/gloo/link/gloo_glue.h"
#include "gloo/transport/pair.h"

namespace hvd::collectives::gloo {
namespace {

// Gloo's tags for independent sequences of messages between two ranks. Nothing is ever sent on
// kProbeSlot; see FindLost.
enum Slot : uint64_t { kDataSlot = 1, kSentinelSlot = 2, kProbeSlot = 3 };

}  // namespace

GlooLinks::Region::Region(GlooLinks& links, void* data, size_t bytes)
    : links_(links), buffer_(links.mesh_->context().createUnboundBuffer(data, bytes)) {
  absl::MutexLock lock(&links_.mutex_);
  links_.regions_.push_back(this);
}

GlooLinks::Region::~Region() {
  absl::MutexLock lock(&links_.mutex_);
  auto& regions = links_.regions_;
  regions.erase(std::find(regions.begin(), regions.end(), this));
}

absl::Status GlooLinks::Region::Send(int peer, size_t offset, size_t bytes) {
  RETURN_IF_ERROR(links_.status());
  return links_.Explain(link::GlooCall([&] { buffer_->send(peer, kDataSlot, offset, bytes); }));
}

absl::Status GlooLinks::Region::Receive(int peer, size_t offset, size_t bytes) {
  RETURN_IF_ERROR(links_.status());
  return links_.Explain(link::GlooCall([&] { buffer_->recv(peer, kDataSlot, offset, bytes); }));
}

absl::Status GlooLinks::Region::AwaitSent(int peer, absl::Time deadline) {
  return Await(true, peer, deadline);
}

absl::Status GlooLinks::Region::AwaitReceived(int peer, absl::Time deadline) {
  return Await(false, peer, deadline);
}

absl::Status GlooLinks::Region::Await(bool sent, int peer, absl::Time deadline) {
  RETURN_IF_ERROR(links_.status());
  const auto timeout = link::GlooTimeout(deadline - Clock::Real().Now());
  bool completed = false;
  const absl::Status waited = link::GlooCall(
      [&] { completed = sent ? buffer_->waitSend(timeout) : buffer_->waitRecv(timeout); });
  if (waited.ok() && completed) return waited;
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

absl::Status GlooLinks::Explain(const absl::Status& from_gloo) {
  if (from_gloo.ok()) return from_gloo;
  if (status().ok()) BreakOverPeers(from_gloo);
  return status();
}

GlooLinks::GlooLinks(std::unique_ptr<GlooMesh> mesh, int rank, int size)
    : mesh_(std::move(mesh)), rank_(rank), size_(size), is_linked_(size, false), last_words_(size) {
  is_linked_[rank] = true;
  sentinel_ = mesh_->context().createUnboundBuffer(last_words_.data(), size * sizeof(LastWord));
  watcher_ = StartSignalFreeThread([this] { Watch(); });
}

absl::Status GlooLinks::Connect(absl::Span<const int> peers, absl::Time deadline,
                                const Cancellation* cancellation) {
  std::vector<int> missing;
  for (const int peer : peers) {
    if (!is_linked_[peer]) missing.push_back(peer);
  }
  if (missing.empty()) return absl::OkStatus();
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  RETURN_IF_ERROR(status());
  const absl::Status connected =
      mesh_->Connect(missing, deadline, cancellation == nullptr ? &broken_ : cancellation);
  if (!connected.ok()) {
    CloseConnections(missing);
    RETURN_IF_ERROR(status());
    return connected;
  }
  RETURN_IF_ERROR(Register(missing));
  return Greet(missing, deadline);
}

absl::Status GlooLinks::Register(const std::vector<int>& peers) {
  for (const int peer : peers) {
    const absl::Status posted = link::GlooCall(
        [&] { sentinel_->recv(peer, kSentinelSlot, peer * sizeof(LastWord), sizeof(LastWord)); });
    if (!posted.ok()) {
      return absl::Status(posted.code(), absl::StrCat("rank ", peer, ": ", posted.message()));
    }
    is_linked_[peer] = true;
  }
  {
    absl::MutexLock lock(&mutex_);
    if (status_.ok()) {
      linked_.insert(linked_.end(), peers.begin(), peers.end());
      return absl::OkStatus();
    }
  }
  // The links broke meanwhile. The watcher has closed, or will close, only the connections of
  // linked_, which these are not in.
  CloseConnections(peers);
  return status();
}

absl::Status GlooLinks::Greet(const std::vector<int>& peers, absl::Time deadline) {
  char greetings[2] = {0, 0};
  Region region(*this, greetings, sizeof(greetings));
  for (const int peer : peers) {
    RETURN_IF_ERROR(region.Receive(peer, 1, 1));
    RETURN_IF_ERROR(region.Send(peer, 0, 1));
  }
  for (const int peer : peers) {
    RETURN_IF_ERROR(region.AwaitReceived(peer, deadline));
    RETURN_IF_ERROR(region.AwaitSent(peer, deadline));
  }
  return absl::OkStatus();
}

std::vector<int> GlooLinks::LinkedPeers() const {
  absl::ReaderMutexLock lock(&mutex_);
  return linked_;
}

GlooLinks::~GlooLinks() {
  link::ScopedSigpipeBlock no_sigpipe;
  if (status().ok()) {
    SayLastWord(kGoodbye);
    sentinel_->abortWaitRecv();
  }
  if (watcher_.joinable()) watcher_.join();
}

absl::Status GlooLinks::status() const {
  absl::ReaderMutexLock lock(&mutex_);
  return status_;
}

void GlooLinks::Break(const absl::Status& why, int cause) {
  std::function<void(const absl::Status&)> listener;
  {
    absl::MutexLock lock(&mutex_);
    const bool first = status_.ok();
    if (!absl::IsAborted(status_)) status_ = why;
    if (!first) return;
    cause_ = cause;
    // Calling Gloo with the mutex held can't deadlock: these calls only set flags and notify, and
    // Gloo never calls this class with its own locks held.
    for (Region* region : regions_) {
      region->buffer_->abortWaitRecv();
      region->buffer_->abortWaitSend();
    }
    sentinel_->abortWaitRecv();
    listener = listener_;
  }
  broken_.Cancel(why);
  if (listener != nullptr) listener(why);
}

void GlooLinks::OnBroken(std::function<void(const absl::Status&)> listener) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    listener_ = listener;
    status = status_;
  }
  if (!status.ok()) listener(status);
}

// The watcher thread. Waits for the sentinels until a failure, or until it is interrupted by
// Break() or the destructor; then sends the last message and closes the connections. The order
// matters: a peer that sees its connection close first would only know that this rank is gone, not
// which rank caused it.
void GlooLinks::Watch() {
  for (;;) {
    bool answered = false;
    const absl::Status waited = link::GlooCall([&] {
      answered = sentinel_->waitRecv(nullptr, link::GlooTimeout(absl::InfiniteDuration()));
    });
    if (waited.ok() && !answered) break;  // interrupted: leaving, or broken already
    // A goodbye alone is no failure: this rank may not need that peer any more.
    bool all_in_order = waited.ok();
    for (int peer = 0; peer < size_; ++peer) all_in_order &= LastWordOf(peer) <= 0;
    if (all_in_order) continue;
    if (status().ok()) BreakOverPeers(waited);
    break;
  }
  int cause = -1;
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (status_.ok()) return;
    cause = cause_;
  }
  SayLastWord(1 + cause);
  mesh_->Drop();
  CloseConnections(LinkedPeers());
}

// Finds the cause, in the order of precision: a last message that names it; a peer whose connection
// broke without a last message, as that of a process that was killed; a peer that left cleanly
// although this rank still waits for it; otherwise only Gloo's error is known.
void GlooLinks::BreakOverPeers(const absl::Status& waited) {
  std::vector<int> left;
  for (int peer = 0; peer < size_; ++peer) {
    const int32_t word = LastWordOf(peer);
    if (word == kGoodbye) left.push_back(peer);
    if (word <= 0) continue;
    const int cause = word - 1;
    return Break(
        absl::UnavailableError(
            cause == peer ? absl::StrCat("rank ", peer, " is gone")
                          : absl::StrCat("rank ", peer, " gave up because of rank ", cause)),
        cause);
  }
  std::string why;
  const std::vector<int> lost = FindLost(why);
  const std::vector<int>& gone = lost.empty() ? left : lost;
  if (gone.empty()) return Break(waited, rank_);
  Break(absl::UnavailableError(absl::StrCat("rank ", absl::StrJoin(gone, ", "), " is gone", why)),
        gone.front());
}

void GlooLinks::SayLastWord(int32_t value) {
  LastWord word = {value, ~value};
  // The peers' sentinels are posted (see Greet), so Gloo writes these messages to the sockets at
  // once if there is room. They are best effort: if a socket's buffer is full, the peer only sees
  // the connection close.
  const auto buffer = mesh_->context().createUnboundBuffer(&word, sizeof(word));
  for (const int peer : LinkedPeers()) {
    (void)link::GlooCall([&] { buffer->send(peer, kSentinelSlot, 0, sizeof(word)); });
  }
}

void GlooLinks::CloseConnections(const std::vector<int>& peers) {
  mesh_->Hurry();
  for (const int peer : peers) {
    (void)link::GlooCall([&] {
      const auto& pair = mesh_->context().getPair(peer);
      if (pair != nullptr) pair->close();
    });
  }
}

// Gloo's thread writes the last messages into memory without any lock of this class, so this read
// races with it by design. It is harmless: each message is written once, and `check` reveals one
// that is not complete yet, so the worst result is 0, that none has arrived.
__attribute__((no_sanitize("thread"))) int32_t GlooLinks::LastWordOf(int peer) const {
  const volatile LastWord& word = last_words_[peer];
  const int32_t value = word.value;
  return word.check == ~value ? value : 0;
}

std::vector<int> GlooLinks::FindLost(std::string& why) {
  std::vector<int> lost;
  const auto probe = mesh_->context().createUnboundBuffer(nullptr, 0);
  for (const int peer : LinkedPeers()) {
    if (LastWordOf(peer) != 0) continue;
    // A receive on a broken connection throws at once. On an intact one it has no effect, since
    // nothing is sent on kProbeSlot.
    const absl::Status probed = link::GlooCall([&] { probe->recv(peer, kProbeSlot, 0, 0); });
    if (probed.ok()) continue;
    lost.push_back(peer);
    const size_t unsafe = probed.message().find(kUnsafe);
    if (unsafe == absl::string_view::npos) continue;
    why = absl::StrCat("; rank ", peer, ": ", probed.message().substr(unsafe + strlen(kUnsafe)));
  }
  return lost;
}

}  // namespace hvd::collectives::gloo
