#include "worker_runtime/control/mail_control_channel.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "worker_runtime/control/control_messages.h"

namespace hvd::worker_runtime::control {
namespace {

class MailControlChannel : public ControlChannel {
 public:
  MailControlChannel(collectives::Mailbox& mailbox, int rank, int size)
      : mailbox_(mailbox), rank_(rank), size_(size) {
    if (rank > 0) {
      peers_.emplace_back(0);
    } else {
      for (int peer = 1; peer < size; ++peer) peers_.emplace_back(peer);
    }
  }

  ~MailControlChannel() override { mailbox_.Close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status Send(int peer, absl::string_view message) override;
  absl::Status Flush(absl::Duration timeout) override;
  absl::StatusOr<std::vector<Message>> Receive(absl::Duration timeout) override;
  bool PrepareSleep() override {
    return received_.empty() && lost_.ok() && !woken_ &&
           mailbox_.PrepareSleep([this] { return HasNews(); });
  }
  void AwaitWake(absl::Duration timeout) override { mailbox_.AwaitWake(timeout); }
  void StayAwake() override { mailbox_.StayAwake(); }
  void TakeOver() override { mailbox_.TakeOver(); }
  bool WaitsCheaply() const override { return true; }
  void Wake() override { mailbox_.Wake(); }
  void Finish(absl::Duration timeout, absl::FunctionRef<bool()> give_up,
              absl::FunctionRef<void(Message)> on_message) override;

 private:
  // One end of a link.
  struct Peer {
    explicit Peer(int r) : rank(r) {}
    int rank;
    MessageDecoder decoder;
    std::string unsent;
    size_t unsent_from = 0;
    absl::Status gone;  // not OK: the peer is gone
  };

  Peer& Of(int rank) { return peers_[rank_ > 0 ? 0 : rank - 1]; }
  bool HasNews() const;
  // Writes and reads as much as is possible without waiting.
  void Exchange();
  void ReadFrom(Peer& peer);
  void WriteTo(Peer& peer);
  void Lose(Peer& peer, absl::string_view why);
  // Waits until there is news, or Wake() was called, or the deadline has passed; handles it.
  void AwaitNews(absl::Time deadline);
  bool IsAnyThere() const;
  const Peer* FindUnsent() const;

  collectives::Mailbox& mailbox_;
  const int rank_;
  const int size_;
  std::vector<Peer> peers_;
  std::vector<Message> received_;
  absl::Status lost_;  // the first peer that is gone
  bool woken_ = false;
};

absl::Status MailControlChannel::Send(int rank, absl::string_view message) {
  Peer& peer = Of(rank);
  if (!peer.gone.ok()) return peer.gone;
  ASSIGN_OR_RETURN(const std::string frames, EncodeMessage(message));
  peer.unsent += frames;
  WriteTo(peer);
  return peer.gone;
}

void MailControlChannel::WriteTo(Peer& peer) {
  if (peer.unsent.empty()) return;
  const absl::string_view rest = absl::string_view(peer.unsent).substr(peer.unsent_from);
  // Takes what fits into the ring; Exchange sends the rest when the peer has read.
  peer.unsent_from += mailbox_.Write(peer.rank, rest);
  if (peer.unsent_from < peer.unsent.size()) return;
  peer.unsent.clear();
  peer.unsent_from = 0;
}

void MailControlChannel::ReadFrom(Peer& peer) {
  // The state is read before the data: a peer writes its last messages before it closes, so if it
  // is closed here, the loop below reads all of them.
  const collectives::Mailbox::PeerState state = mailbox_.state(peer.rank);
  char buffer[4096];
  while (const size_t got = mailbox_.Read(peer.rank, buffer, sizeof(buffer))) {
    peer.decoder.Append(absl::string_view(buffer, got));
  }
  while (true) {
    absl::StatusOr<std::optional<std::string>> message = peer.decoder.Next();
    if (!message.ok()) return Lose(peer, message.status().message());
    if (!message->has_value()) break;
    received_.push_back(Message{peer.rank, **std::move(message)});
  }
  // The peer's last messages are delivered before its loss is reported: they may have the reason.
  if (!received_.empty()) return;
  if (state == collectives::Mailbox::PeerState::kClosed)
    Lose(peer, "it closed its control connection");
  if (state == collectives::Mailbox::PeerState::kDead) Lose(peer, "its process has ended");
}

void MailControlChannel::Lose(Peer& peer, absl::string_view why) {
  if (!peer.gone.ok()) return;
  peer.gone = absl::UnavailableError(absl::StrCat("rank ", peer.rank, " is gone: ", why));
  peer.unsent.clear();
  if (lost_.ok()) lost_ = peer.gone;
}

// The condition to wake up for: something to read, the end of a peer, or room for queued bytes.
bool MailControlChannel::HasNews() const {
  for (const Peer& peer : peers_) {
    if (!peer.gone.ok()) continue;
    if (mailbox_.HasData(peer.rank) ||
        mailbox_.state(peer.rank) != collectives::Mailbox::PeerState::kThere ||
        (!peer.unsent.empty() && mailbox_.HasRoom(peer.rank))) {
      return true;
    }
  }
  return false;
}

void MailControlChannel::Exchange() {
  for (Peer& peer : peers_) {
    if (!peer.gone.ok()) continue;
    WriteTo(peer);
    ReadFrom(peer);
  }
  woken_ = mailbox_.TakeWake() || woken_;
}

void MailControlChannel::AwaitNews(absl::Time deadline) {
  const absl::Time now = Clock::Real().Now();
  const bool has_news =
      now < deadline && mailbox_.Look([this] { return HasNews() || received_.size() > 0; });
  // Look spins for a short time without a system call. PrepareSleep then announces the sleep and
  // checks once more, so a peer that writes meanwhile either is seen here or wakes this thread.
  if (!has_news && Clock::Real().Now() < deadline &&
      mailbox_.PrepareSleep([this] { return HasNews(); })) {
    mailbox_.AwaitWake(deadline - Clock::Real().Now());
    mailbox_.StayAwake();
  }
  Exchange();
}

absl::StatusOr<std::vector<ControlChannel::Message>> MailControlChannel::Receive(
    absl::Duration timeout) {
  Exchange();
  if (timeout > absl::ZeroDuration() && received_.empty() && lost_.ok() && !woken_) {
    const absl::Time deadline = timeout == absl::InfiniteDuration() ? absl::InfiniteFuture()
                                                                    : Clock::Real().Now() + timeout;
    do {
      AwaitNews(deadline);
    } while (received_.empty() && lost_.ok() && !woken_ && Clock::Real().Now() < deadline);
  }
  woken_ = false;
  if (received_.empty() && !lost_.ok()) return lost_;
  return std::exchange(received_, {});
}

const MailControlChannel::Peer* MailControlChannel::FindUnsent() const {
  for (const Peer& peer : peers_) {
    if (peer.gone.ok() && !peer.unsent.empty()) return &peer;
  }
  return nullptr;
}

absl::Status MailControlChannel::Flush(absl::Duration timeout) {
  if (FindUnsent() == nullptr) return absl::OkStatus();
  const absl::Time deadline = Clock::Real().Now() + timeout;
  while (const Peer* peer = FindUnsent()) {
    if (Clock::Real().Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", peer->rank,
                                                      " has not read its control messages for ",
                                                      absl::FormatDuration(timeout)));
    }
    AwaitNews(deadline);
  }
  return absl::OkStatus();
}

bool MailControlChannel::IsAnyThere() const {
  for (const Peer& peer : peers_) {
    if (peer.gone.ok()) return true;
  }
  return false;
}

void MailControlChannel::Finish(absl::Duration timeout, absl::FunctionRef<bool()> give_up,
                                absl::FunctionRef<void(Message)> on_message) {
  const absl::Time deadline = Clock::Real().Now() + timeout;
  // Best effort: a peer that does not read its messages loses them.
  if (!give_up()) Flush(timeout).IgnoreError();
  // Closed before the wait: the peers, too, wait until all have closed.
  mailbox_.Close();
  auto hand_over = [&] {
    for (Message& message : std::exchange(received_, {})) on_message(std::move(message));
  };
  hand_over();
  while (IsAnyThere() && !give_up() && Clock::Real().Now() < deadline) {
    AwaitNews(deadline);
    hand_over();
  }
}

}  // namespace

std::unique_ptr<ControlChannel> MakeMailControlChannel(collectives::Mailbox& mailbox, int rank,
                                                       int size) {
  return std::make_unique<MailControlChannel>(mailbox, rank, size);
}

}  // namespace hvd::worker_runtime::control
