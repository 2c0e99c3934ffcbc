#include "collectives/messages/host_lines.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "collectives/messages/given_up.h"

namespace hvd::collectives::messages {
namespace {

// Packets up to this size become visible at once, so that the reader need not look twice.
constexpr size_t kTogether = 512;

uint64_t RandomCookie() {
  uint64_t cookie = 0;
  std::memcpy(&cookie, RandomBytes(sizeof(cookie)).data(), sizeof(cookie));
  return cookie;
}

}  // namespace

// The card is written before the first packet, and so is visible to whoever has read one.
HostLines::HostLines(std::unique_ptr<shm::ShmLinks> links, std::vector<int> ranks,
                     Endpoint& endpoint)
    : links_(std::move(links)),
      mailbox_(*links_),
      ranks_(std::move(ranks)),
      index_(endpoint.size(), -1),
      cookie_(RandomCookie()) {
  (new (&card(own())) MemoryCard())->FillIn(&cookie_);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const int index = static_cast<int>(i);
    flows_.emplace_back(mailbox_, index);
    memories_.emplace_back(card(index));
    if (index == own()) continue;
    index_[ranks_[i]] = index;
    endpoint.SetOutFlow(ranks_[i], &flows_.back());
    endpoint.SetInFlow(ranks_[i], &flows_.back());
    endpoint.SetMemory(ranks_[i], &memories_.back());
  }
}

HostLines::~HostLines() = default;

MemoryCard& HostLines::card(int index) const {
  char* const block = links_->segment().callers() + index * shm::segment::kCallersBytes;
  return *reinterpret_cast<MemoryCard*>(block);
}

size_t HostLines::Flow::Write(absl::string_view first, absl::string_view second) {
  if (first.size() + second.size() <= kTogether && !first.empty() && !second.empty()) {
    std::array<char, kTogether> both;
    std::memcpy(both.data(), first.data(), first.size());
    std::memcpy(both.data() + first.size(), second.data(), second.size());
    return mailbox_.Write(index_, {both.data(), first.size() + second.size()});
  }
  const size_t written = first.empty() ? 0 : mailbox_.Write(index_, first);
  if (written < first.size() || second.empty()) return written;
  return written + mailbox_.Write(index_, second);
}

absl::StatusOr<bool> HostLines::Move(Endpoint& endpoint) {
  bool moved = false;
  const size_t count = ranks_.size();
  next_ = (next_ + 1) % count;
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (next_ + i) % count;
    if (static_cast<int>(index) == own()) continue;
    const int peer = ranks_[index];
    if (mailbox_.HasData(static_cast<int>(index)) && !endpoint.ended(peer)) {
      ASSIGN_OR_RETURN(const Endpoint::Seen seen, endpoint.Read(peer));
      moved = moved || seen.moved;
    }
    if (endpoint.wants_to_write(peer)) moved = endpoint.Write(peer) || moved;
  }
  return moved;
}

void HostLines::NoteWriters(const Endpoint& endpoint) {
  writers_.clear();
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (endpoint.wants_to_write(ranks_[i])) writers_.push_back(static_cast<int>(i));
  }
}

bool HostLines::HasNews() const {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (static_cast<int>(i) != own() && mailbox_.HasData(static_cast<int>(i))) return true;
  }
  return std::any_of(writers_.begin(), writers_.end(),
                     [this](int index) { return mailbox_.HasRoom(index); });
}

bool HostLines::CanMove(const Endpoint& endpoint) const {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const int index = static_cast<int>(i);
    if (index == own() || endpoint.ended(ranks_[i])) continue;
    if (mailbox_.HasData(index)) return true;
    if (mailbox_.HasRoom(index) && endpoint.wants_to_write(ranks_[i])) return true;
  }
  return false;
}

// A peer's state is read before its stream, so nothing comes behind what is read then.
absl::Status HostLines::Review(Endpoint& endpoint) {
  const bool broken = !links_->Check().ok();
  if (broken) links_->StayAwake();  // the peer's end may just have become visible
  absl::Status why;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const int index = static_cast<int>(i);
    const int peer = ranks_[i];
    if (index == own() || endpoint.ended(peer)) continue;
    const Mailbox::PeerState state = mailbox_.state(index);
    if (state == Mailbox::PeerState::kThere && !broken) continue;
    for (bool more = true; more;) {
      ASSIGN_OR_RETURN(const Endpoint::Seen seen, endpoint.Read(peer));
      more = seen.more;
    }
    if (state == Mailbox::PeerState::kThere) continue;
    const std::string name = absl::StrCat("rank ", peer, " is gone: ");
    if (state == Mailbox::PeerState::kClosed) {
      endpoint.EndPeer(peer, absl::UnavailableError(absl::StrCat(name, "it has left")));
    } else {
      why = absl::UnavailableError(absl::StrCat(name, "its process has ended"));
    }
  }
  if (!why.ok() || !broken) return why;
  const uint32_t by = links_->segment().header().broken_by.load(std::memory_order_acquire);
  if (by == 0 || by > ranks_.size()) return links_->status();
  return GivenUpError(ranks_[by - 1]);
}

bool HostLines::IsThere(int peer) const {
  // The copy must not be read after the state; both are system calls or volatile enough to the
  // compiler, but not to the CPU.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return mailbox_.state(index_[peer]) == Mailbox::PeerState::kThere &&
         links_->segment().header().broken_by.load(std::memory_order_acquire) == 0;
}

bool HostLines::PrepareSleep(const Endpoint& endpoint) {
  return links_->PrepareSleep([&] {
    if (CanMove(endpoint)) return true;
    if (links_->segment().header().broken_by.load(std::memory_order_acquire) != 0) return true;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const int index = static_cast<int>(i);
      if (index != own() && !endpoint.ended(ranks_[i]) &&
          mailbox_.state(index) != Mailbox::PeerState::kThere) {
        return true;
      }
    }
    return false;
  });
}

}  // namespace hvd::collectives::messages
