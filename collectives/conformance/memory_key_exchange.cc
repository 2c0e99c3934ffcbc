#include "collectives/conformance/memory_key_exchange.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace hvd::collectives::conformance {

class KeyExchangeTable::RankExchange : public KeyExchange {
 public:
  RankExchange(KeyExchangeTable& table, int rank) : table_(table), rank_(rank) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    const absl::Time deadline = Clock::Real().Now() + timeout;
    absl::MutexLock lock(&table_.mutex_);
    ++table_.calls_;
    std::map<int, std::string>& values = table_.values_[std::string(key)];
    values[rank_] = std::string(value);
    const auto complete = [&] { return values.size() == static_cast<size_t>(table_.size_); };
    if (!Clock::Real().AwaitWithDeadline(table_.mutex_, absl::Condition(&complete), deadline)) {
      return absl::DeadlineExceededError(absl::StrCat("only ", values.size(), " ranks have come"));
    }
    std::vector<std::string> result;
    for (const auto& [rank, given] : values) result.push_back(given);
    table_.shown_ += result.size();
    return result;
  }

  absl::StatusOr<Selected> Gather(absl::string_view key, absl::string_view value,
                                  const std::vector<int>& ranks, absl::Duration timeout) override {
    absl::StatusOr<Selected> selected = KeyExchange::Gather(key, value, ranks, timeout);
    absl::MutexLock lock(&table_.mutex_);
    if (selected.ok()) table_.shown_ -= table_.size_ - ranks.size();
    return selected;
  }

 private:
  KeyExchangeTable& table_;
  const int rank_;
};

std::unique_ptr<KeyExchange> KeyExchangeTable::ForRank(int rank) {
  return std::make_unique<RankExchange>(*this, rank);
}

size_t KeyExchangeTable::shown() const {
  absl::MutexLock lock(&mutex_);
  return shown_;
}

int KeyExchangeTable::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

}  // namespace hvd::collectives::conformance
