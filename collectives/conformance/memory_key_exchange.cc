#include "collectives/conformance/memory_key_exchange.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace hvd {

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
    return result;
  }

 private:
  KeyExchangeTable& table_;
  const int rank_;
};

std::unique_ptr<KeyExchange> KeyExchangeTable::ForRank(int rank) {
  return std::make_unique<RankExchange>(*this, rank);
}

int KeyExchangeTable::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

}  // namespace hvd
