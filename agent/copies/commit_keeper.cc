#include "agent/copies/commit_keeper.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/failpoint/failpoint.h"
#include "base/net/address.h"
#include "base/net/peer/peer_dialer.h"
#include "base/net/tcp_socket.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"

namespace hvd::agent::copies {
namespace {

using worker_runtime::commit_store::CommitArena;

// The pause between two attempts to connect.
constexpr absl::Duration kPause = absl::Milliseconds(200);
// The size of a piece of a commit; a multiple of CommitArena::kAlignment.
constexpr size_t kPieceBytes = size_t{1} << 18;

}  // namespace

CommitKeeper::CommitKeeper(std::string job, Trust trust, absl::Duration patience)
    : job_(std::move(job)),
      trust_(std::move(trust)),
      patience_(patience),
      memory_(memfd_create("hvd-kept-commits", MFD_CLOEXEC)) {}

CommitKeeper::~CommitKeeper() { Stop(); }

void CommitKeeper::Stop() {
  if (ending_ != nullptr) ending_->Cancel(absl::CancelledError("no copies are wanted any more"));
  if (thread_.joinable()) thread_.join();
}

void CommitKeeper::Follow(const std::string& address, OnKept on_kept) {
  // The thread is joined first: arena_, newest_ and on_kept_ belong to it while it runs.
  Stop();
  on_kept_ = std::move(on_kept);
  if (arena_ == nullptr && memory_.valid()) {
    auto opened = CommitArena::Open(Fd(fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0)), job_);
    if (opened.ok()) arena_ = *std::move(opened);
  }
  if (arena_ == nullptr) return;
  ending_ = std::make_unique<Cancellation>();
  thread_ = StartSignalFreeThread([this, address] { TakeAll(address); });
}

void CommitKeeper::Drop() {
  Stop();
  if (arena_ != nullptr) arena_->Clear();
  newest_ = 0;
}

void CommitKeeper::TakeAll(const std::string& address) {
  RunInBackground();
  absl::Time tells_at = Clock::Real().Now() + patience_;  // InfiniteFuture: it has told
  while (ending_->status().ok()) {
    // Whatever the error is, the next attempt begins anew. The daemon names another source if this
    // one is gone.
    was_reached_ = false;
    const absl::Status status = TakeFrom(address);
    const absl::Time now = Clock::Real().Now();
    if (was_reached_) tells_at = now + patience_;
    if (now >= tells_at && ending_->status().ok()) {
      on_kept_(status);
      tells_at = absl::InfiniteFuture();
    }
    // Without a descriptor it waits for the cancellation or the end of the pause.
    net::AwaitReady(-1, 0, Clock::Real().Now() + kPause, ending_.get()).IgnoreError();
  }
}

absl::Status CommitKeeper::TakeFrom(const std::string& address) {
  ASSIGN_OR_RETURN(const net::SocketAddress source, net::ParseSocketAddress(address));
  const auto make_handshake = [this](std::string binding) {
    return MakeTokenHandshake(trust_, net::TlsEnd::kConnects, std::move(binding));
  };
  ASSIGN_OR_RETURN(net::Wire wire,
                   net::peer::Dial({source, trust_.tls, make_handshake},
                                   Clock::Real().Now() + Channel::kPatience, ending_.get()));
  was_reached_ = true;
  RETURN_IF_ERROR(net::TuneForMessages(wire.fd()));
  Channel channel(std::move(wire), *ending_);
  while (true) RETURN_IF_ERROR(TakeOne(channel));
}

absl::Status CommitKeeper::TakeOne(Channel& channel) {
  // One round of the protocol: request with the newest number, header, contents. The copy is filled
  // beside the present one and becomes valid only with Seal, so a failure in between leaves the
  // present copy intact.
  RETURN_IF_ERROR(channel.Send(EncodeNumber(newest_)));
  RETURN_IF_ERROR(channel.AwaitBytes());
  std::string bytes(CopyHead::kBytes, '\0');
  RETURN_IF_ERROR(channel.Receive(bytes.data(), bytes.size()));
  const CopyHead head = CopyHead::Decode(bytes);
  RETURN_IF_ERROR(arena_->Begin(head.size).status());
  RETURN_IF_ERROR(FAILPOINT_STATUS("agent.copy.begun"));
  RETURN_IF_ERROR(Fill(channel, head));
  RETURN_IF_ERROR(FAILPOINT_STATUS("agent.copy.filled"));
  // The source reads the commit from memory that its worker may overwrite at any time.
  if (arena_->pending_checksum() != head.checksum) {
    return absl::AbortedError("the commit was replaced while it was read");
  }
  RETURN_IF_ERROR(arena_->Seal(head.number));
  FAILPOINT("agent.copy.sealed");
  newest_ = head.number;
  on_kept_(newest_);
  FAILPOINT("agent.copy.told");
  return absl::OkStatus();
}

absl::Status CommitKeeper::Fill(Channel& channel, const CopyHead& head) {
  const auto piece = std::make_unique<char[]>(kPieceBytes);
  for (uint64_t left = head.size; left > 0;) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(left, kPieceBytes));
    RETURN_IF_ERROR(channel.Receive(piece.get(), size));
    RETURN_IF_ERROR(arena_->Append({piece.get(), size}));
    left -= size;
  }
  return absl::OkStatus();
}

}  // namespace hvd::agent::copies
