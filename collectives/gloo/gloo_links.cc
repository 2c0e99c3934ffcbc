#include "collectives/gloo/gloo_links.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/gloo/gloo_glue.h"
#include "gloo/transport/pair.h"

namespace hvd {
namespace {

// Gloo's name for a sequence of messages.
enum Slot : uint64_t { kDataSlot = 1, kSentinelSlot = 2, kProbeSlot = 3 };

}  // namespace

GlooLinks::Region::Region(GlooLinks& links, void* data, size_t bytes)
    : links_(links), buffer_(links.mesh_->context->createUnboundBuffer(data, bytes)) {
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
  const absl::Status sent = GlooCall([&] { buffer_->send(peer, kDataSlot, offset, bytes); });
  return sent.ok() ? sent : absl::Status(sent.code(), absl::StrCat("rank ", peer, " is gone"));
}

absl::Status GlooLinks::Region::Receive(int peer, size_t offset, size_t bytes) {
  RETURN_IF_ERROR(links_.status());
  const absl::Status posted = GlooCall([&] { buffer_->recv(peer, kDataSlot, offset, bytes); });
  return posted.ok() ? posted : absl::Status(posted.code(), absl::StrCat("rank ", peer, " is gone"));
}

absl::Status GlooLinks::Region::AwaitSent(int peer, absl::Time deadline) {
  return Await(true, peer, deadline);
}

absl::Status GlooLinks::Region::AwaitReceived(int peer, absl::Time deadline) {
  return Await(false, peer, deadline);
}

absl::Status GlooLinks::Region::Await(bool sent, int peer, absl::Time deadline) {
  RETURN_IF_ERROR(links_.status());
  const auto timeout = GlooTimeout(deadline - Clock::Real().Now());
  bool completed = false;
  const absl::Status waited = GlooCall([&] {
    completed = sent ? buffer_->waitSend(timeout) : buffer_->waitRecv(timeout);
  });
  if (waited.ok() && completed) return waited;
  if (Clock::Real().Now() >= deadline) {
    return absl::DeadlineExceededError(absl::StrCat("rank ", peer, sent ? " took" : " sent",
                                                    " no data in time"));
  }
  RETURN_IF_ERROR(links_.status());
  if (waited.ok()) return absl::InternalError("a wait was interrupted for no reason");
  const std::string lost = links_.DescribeLost();
  if (!lost.empty()) return absl::UnavailableError(absl::StrCat(lost, " is gone"));
  return absl::Status(waited.code(), absl::StrCat("rank ", peer, ": ", waited.message(),
                                                  links_.DescribeLeft()));
}

GlooLinks::GlooLinks(std::unique_ptr<GlooMesh> mesh, int rank, int size)
    : mesh_(std::move(mesh)), rank_(rank), size_(size), goodbyes_(size, 0) {
  sentinel_ = mesh_->context->createUnboundBuffer(goodbyes_.data(), goodbyes_.size());
}

absl::Status GlooLinks::Start() {
  RETURN_IF_ERROR(GlooCall([&] {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) sentinel_->recv(peer, kSentinelSlot, peer, 1);
    }
  }));
  watcher_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

GlooLinks::~GlooLinks() {
  ScopedSigpipeBlock no_sigpipe;
  char goodbye = 1;
  if (status().ok()) {
    // The sentinels of the peers are posted, so these go straight to the sockets.
    const auto buffer = mesh_->context->createUnboundBuffer(&goodbye, 1);
    for (int peer = 0; peer < size_; ++peer) {
      if (peer != rank_) (void)GlooCall([&] { buffer->send(peer, kSentinelSlot, 0, 1); });
    }
    sentinel_->abortWaitRecv();
  }
  if (watcher_.joinable()) watcher_.join();
}

absl::Status GlooLinks::status() const {
  absl::ReaderMutexLock lock(&mutex_);
  return status_;
}

void GlooLinks::Break(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  const bool first = status_.ok();
  if (!absl::IsAborted(status_)) status_ = why;
  if (!first) return;
  // These only set flags and notify; Gloo never calls us, so its locks can't be taken the other way round.
  for (Region* region : regions_) {
    region->buffer_->abortWaitRecv();
    region->buffer_->abortWaitSend();
  }
  sentinel_->abortWaitRecv();
}

void GlooLinks::Watch() {
  for (;;) {
    bool goodbye = false;
    const absl::Status waited = GlooCall([&] {
      goodbye = sentinel_->waitRecv(nullptr, GlooTimeout(absl::InfiniteDuration()));
    });
    if (waited.ok() && goodbye) continue;
    if (!waited.ok() && status().ok()) {
      const std::string lost = DescribeLost();
      Break(absl::UnavailableError(lost.empty() ? std::string(waited.message())
                                                : absl::StrCat(lost, " is gone")));
    }
    break;
  }
  if (!status().ok()) CloseConnections();
}

void GlooLinks::CloseConnections() {
  mesh_->ticker.SetActive(true);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) (void)GlooCall([&] { mesh_->context->getPair(peer)->close(); });
  }
}

// A single byte that is only ever set, so a stale answer does no harm; there is no lock that Gloo's thread would take.
__attribute__((no_sanitize("thread"))) bool GlooLinks::SaidGoodbye(int peer) const {
  return *static_cast<const volatile char*>(&goodbyes_[peer]) != 0;
}

std::string GlooLinks::DescribeLost() {
  std::vector<int> lost;
  const auto probe = mesh_->context->createUnboundBuffer(nullptr, 0);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || SaidGoodbye(peer)) continue;
    if (!GlooCall([&] { probe->recv(peer, kProbeSlot, 0, 0); }).ok()) lost.push_back(peer);
  }
  return lost.empty() ? "" : absl::StrCat("rank ", absl::StrJoin(lost, ", "));
}

std::string GlooLinks::DescribeLeft() {
  std::vector<int> left;
  for (int peer = 0; peer < size_; ++peer) {
    if (SaidGoodbye(peer)) left.push_back(peer);
  }
  return left.empty() ? "" : absl::StrCat(" (already left: rank ", absl::StrJoin(left, ", "), ")");
}

}  // namespace hvd
