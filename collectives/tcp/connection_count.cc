#include "collectives/tcp/connection_count.h"

#include <limits>

#include "absl/strings/str_format.h"

namespace hvd::collectives::tcp {
namespace {

// Several connections are kept if one end sees this much more pace, and the other one not this much
// less: a smaller difference may be chance.
constexpr double kClearlyFaster = 1.5;
constexpr double kClearlySlower = 0.8;
constexpr uint64_t kPatienceFactor = 4;
constexpr uint64_t kComparable = 4;  // the other time has at most so many times the bytes

}  // namespace

bool ConnectionCount::AreComparable(const SendPace& before, const SendPace& now) const {
  return before.moved_bytes > 0 &&
         now.moved_bytes * kComparable >= before.moved_bytes / tries_before_;
}

bool ConnectionCount::IsFaster(const SendPace& before, const SendPace& now) const {
  if (!AreComparable(before, now)) return false;
  return now.gbits() >= kClearlyFaster * before.gbits();
}

bool ConnectionCount::IsSlower(const SendPace& before, const SendPace& now) const {
  if (!AreComparable(before, now)) return false;
  return now.gbits() <= kClearlySlower * before.gbits();
}

void ConnectionCount::Review(uint64_t total, const SendPace& one_end, const SendPace& other_end) {
  if (rule_.always) return Settle();
  // The first messages meet cold memory and connections that have to learn the network's pace.
  if (!is_warm_) {
    is_warm_ = true;
    next_review_ = total + rule_.review_bytes;
    return;
  }
  if (!is_trying_) {
    if (one_end.is_held_up() || other_end.is_held_up()) return Try(total, one_end, other_end);
    return Wait(total);
  }
  is_trying_ = false;
  const bool is_faster =
      IsFaster(one_end_before_, one_end) || IsFaster(other_end_before_, other_end);
  const bool is_slower =
      IsSlower(one_end_before_, one_end) || IsSlower(other_end_before_, other_end);
  if (is_faster && !is_slower) return Settle();
  Wait(total);
}

void ConnectionCount::Settle() {
  is_settled_ = true;
  next_review_ = std::numeric_limits<uint64_t>::max();
}

void ConnectionCount::StayWithOne() {
  is_trying_ = is_settled_ = false;
  next_review_ = std::numeric_limits<uint64_t>::max();
}

void ConnectionCount::Try(uint64_t total, const SendPace& one_end, const SendPace& other_end) {
  is_trying_ = true;
  tries_before_ = pause_bytes_ / rule_.review_bytes;
  one_end_before_ = one_end;
  other_end_before_ = other_end;
  next_review_ = total + rule_.review_bytes;
}

void ConnectionCount::Wait(uint64_t total) {
  pause_bytes_ *= kPatienceFactor;
  next_review_ = total + pause_bytes_;
}

std::string PaceText(const SendPace& pace) { return absl::StrFormat("%.1f Gbit/s", pace.gbits()); }

}  // namespace hvd::collectives::tcp
