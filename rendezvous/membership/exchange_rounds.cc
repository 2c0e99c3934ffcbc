#include "rendezvous/membership/exchange_rounds.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::membership {

ExchangeRounds::ExchangeRounds(int size) : size_(size) {}

absl::Status ExchangeRounds::Check(absl::string_view key, absl::string_view value) const {
  if (!closed_.ok()) return closed_;
  if (key.empty()) return absl::InvalidArgumentError("an exchange needs a key");
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
  Round& round = rounds_[key];
  // The round is complete: this call is a repetition after a lost answer, and gets the stored
  // values.
  if (round.values != nullptr) {
    effects->push_back(ReplyExchange{call, round.values});
    return;
  }
  // A second call of the same rank is a retry after a broken connection: the new call replaces the
  // old one, whose client no longer waits.
  const auto [gift, is_first] = round.gifts.try_emplace(rank);
  if (!is_first) {
    effects->push_back(ReplyStatus{
        gift->second.call,
        absl::CancelledError(absl::StrCat("another call has taken part for key \"", key, "\""))});
  }
  gift->second = Gift{call, std::move(value)};
  if (static_cast<int>(round.gifts.size()) == size_) Complete(&round, effects);
}

void ExchangeRounds::Complete(Round* round, std::vector<Effect>* effects) const {
  std::vector<std::string> values;
  for (auto& [rank, gift] : round->gifts) values.push_back(std::move(gift.value));
  round->values = std::make_shared<const std::vector<std::string>>(std::move(values));
  for (const auto& [rank, gift] : round->gifts) {
    effects->push_back(ReplyExchange{gift.call, round->values});
  }
  round->gifts.clear();
}

bool ExchangeRounds::Withdraw(CallId call, const absl::Status& status,
                              std::vector<Effect>* effects) {
  for (auto& [key, round] : rounds_) {
    for (auto gift = round.gifts.begin(); gift != round.gifts.end(); ++gift) {
      if (gift->second.call != call) continue;
      round.gifts.erase(gift);
      effects->push_back(ReplyStatus{call, status});
      return true;
    }
  }
  return false;
}

void ExchangeRounds::Forget() {
  for (auto& [key, round] : rounds_) round.gifts.clear();
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
}

}  // namespace hvd::rendezvous::membership
