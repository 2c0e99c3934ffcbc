#include "rendezvous/membership/exchange_rounds.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::membership {

namespace {

size_t BytesOf(const std::string& key, const std::vector<std::string>& values) {
  size_t bytes = key.size();
  for (const std::string& value : values) bytes += value.size();
  return bytes;
}

}  // namespace

ExchangeRounds::ExchangeRounds(int size) : size_(size) {}

absl::Status ExchangeRounds::Check(absl::string_view key, absl::string_view value) const {
  if (!closed_.ok()) return closed_;
  if (key.empty()) return absl::InvalidArgumentError("an exchange needs a key");
  if (key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an exchange's key has ", key.size(), " bytes; at most ", kMaxKeyBytes, " are possible"));
  }
  if (value.size() > kMaxValueBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the value for key \"", key, "\" has ",
                                                   value.size(), " bytes; at most ", kMaxValueBytes,
                                                   " can be exchanged"));
  }
  return absl::OkStatus();
}

void ExchangeRounds::Give(int rank, CallId call, const std::string& key, std::string value,
                          std::vector<Effect>* effects) {
  if (absl::Status status = Check(key, value); !status.ok()) {
    effects->push_back(ReplyStatus{call, std::move(status)});
    return;
  }
  const auto known = rounds_.find(key);
  // The round is complete: this call is a repetition after a lost answer, and gets the stored
  // values.
  if (known != rounds_.end() && known->second.values != nullptr) {
    effects->push_back(ReplyExchange{call, known->second.values});
    return;
  }
  // A second call of the same rank is a retry after a broken connection: the new call replaces the
  // old one, whose client no longer waits.
  if (known != rounds_.end() && known->second.gifts.count(rank) > 0) {
    const auto old = known->second.gifts.find(rank);
    effects->push_back(ReplyStatus{
        old->second.call,
        absl::CancelledError(absl::StrCat("another call has taken part for key \"", key, "\""))});
    Remove(rank, key, known->second, old->second);
    known->second.gifts.erase(old);
  }
  absl::Status room = CheckShare(rank, key.size() + value.size());
  if (room.ok()) room = CheckRound(key, value.size());
  if (!room.ok()) {
    effects->push_back(ReplyStatus{call, std::move(room)});
    return;
  }
  const auto round = rounds_.try_emplace(key).first;
  const auto gift = round->second.gifts.emplace(rank, Gift{call, std::move(value)}).first;
  Add(rank, key, round->second, gift->second);
  if (static_cast<int>(round->second.gifts.size()) == size_) Complete(round, effects);
}

absl::Status ExchangeRounds::CheckShare(int rank, size_t bytes) const {
  const auto share = open_.find(rank);
  if (share == open_.end()) return absl::OkStatus();
  if (share->second.calls < kMaxOpen && share->second.bytes + bytes <= kMaxOpenBytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "rank ", rank, " waits for ", share->second.calls, " exchanges with ", share->second.bytes,
      " bytes; at most ", kMaxOpen, " with ", kMaxOpenBytes, " bytes are possible"));
}

absl::Status ExchangeRounds::CheckRound(const std::string& key, size_t bytes) const {
  const auto round = rounds_.find(key);
  const size_t taken = round == rounds_.end() ? 0 : round->second.bytes;
  if (taken + bytes <= kMaxRoundBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the values for key \"", key, "\" have ",
                                                   taken + bytes, " bytes; at most ",
                                                   kMaxRoundBytes, " can be exchanged at once"));
}

void ExchangeRounds::Complete(Rounds::iterator found, std::vector<Effect>* effects) {
  Round& round = found->second;
  std::vector<std::string> values;
  for (auto& [rank, gift] : round.gifts) {
    Remove(rank, found->first, round, gift);
    values.push_back(std::move(gift.value));
  }
  round.values = std::make_shared<const std::vector<std::string>>(std::move(values));
  for (const auto& [rank, gift] : round.gifts) {
    effects->push_back(ReplyExchange{gift.call, round.values});
  }
  round.gifts.clear();
  Count(found->first, round);
  ForgetOldResults();
}

// A call is repeated soon after its answer was lost. Nobody asks for the old ones any more.
void ExchangeRounds::ForgetOldResults() {
  while (kept_.size() > 1 && (kept_.size() > kMaxKept || kept_bytes_ > kMaxKeptBytes)) {
    const auto oldest = rounds_.find(kept_.front());
    kept_bytes_ -= BytesOf(oldest->first, *oldest->second.values);
    rounds_.erase(oldest);
    kept_.pop_front();
  }
}

void ExchangeRounds::CountAll() {
  open_.clear();
  kept_.clear();
  kept_bytes_ = 0;
  for (auto& [key, round] : rounds_) Count(key, round);
}

void ExchangeRounds::Count(const std::string& key, Round& round) {
  round.bytes = 0;
  for (const auto& [rank, gift] : round.gifts) Add(rank, key, round, gift);
  if (round.values == nullptr) return;
  kept_.push_back(key);
  kept_bytes_ += BytesOf(key, *round.values);
}

void ExchangeRounds::Add(int rank, const std::string& key, Round& round, const Gift& gift) {
  round.bytes += gift.value.size();
  Share& share = open_[rank];
  ++share.calls;
  share.bytes += key.size() + gift.value.size();
}

void ExchangeRounds::Remove(int rank, const std::string& key, Round& round, const Gift& gift) {
  round.bytes -= gift.value.size();
  Share& share = open_.at(rank);
  --share.calls;
  share.bytes -= key.size() + gift.value.size();
}

bool ExchangeRounds::Withdraw(CallId call, const absl::Status& status,
                              std::vector<Effect>* effects) {
  for (auto round = rounds_.begin(); round != rounds_.end(); ++round) {
    std::map<int, Gift>& gifts = round->second.gifts;
    for (auto gift = gifts.begin(); gift != gifts.end(); ++gift) {
      if (gift->second.call != call) continue;
      Remove(gift->first, round->first, round->second, gift->second);
      gifts.erase(gift);
      if (gifts.empty()) rounds_.erase(round);
      effects->push_back(ReplyStatus{call, status});
      return true;
    }
  }
  return false;
}

void ExchangeRounds::Forget() {
  for (auto round = rounds_.begin(); round != rounds_.end();) {
    round->second.gifts.clear();
    round = round->second.values == nullptr ? rounds_.erase(round) : std::next(round);
  }
  open_.clear();
}

void ExchangeRounds::Close(const absl::Status& status, std::vector<Effect>* effects) {
  if (!closed_.ok()) return;
  closed_ = status;
  for (const auto& [key, round] : rounds_) {
    for (const auto& [rank, gift] : round.gifts) {
      effects->push_back(ReplyStatus{gift.call, status});
    }
  }
  rounds_.clear();
  CountAll();
}

}  // namespace hvd::rendezvous::membership
