#include "worker_runtime/group/store_exchange.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::group {
namespace {

constexpr char kSame[] = "same";
constexpr char kDifferent[] = "different";

// Each text after its length and a colon.
std::string Join(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) absl::StrAppend(&joined, text.size(), ":", text);
  return joined;
}

absl::StatusOr<std::vector<std::string>> Split(absl::string_view joined, int count) {
  std::vector<std::string> texts;
  while (!joined.empty()) {
    const size_t colon = joined.find(':');
    size_t length = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(joined.substr(0, colon), &length) ||
        length > joined.size() - colon - 1) {
      break;
    }
    texts.emplace_back(joined.substr(colon + 1, length));
    joined.remove_prefix(colon + 1 + length);
  }
  if (!joined.empty() || texts.size() != static_cast<size_t>(count)) {
    return absl::InternalError("the store has returned what no rank has set");
  }
  return texts;
}

bool AreEqual(const std::vector<std::string>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

std::string KeyOf(absl::string_view round, int rank) { return absl::StrCat(round, "/", rank); }
std::string ResultOf(absl::string_view round) { return absl::StrCat(round, "/all"); }

}  // namespace

absl::StatusOr<std::vector<std::string>> StoreExchange::Collect(absl::string_view key,
                                                                absl::string_view own,
                                                                absl::Duration timeout) {
  std::vector<std::string> values = {std::string(own)};
  for (int rank = 1; rank < size_; ++rank) {
    ASSIGN_OR_RETURN(std::string value, store_.Get(KeyOf(key, rank), timeout));
    values.push_back(std::move(value));
  }
  return values;
}

absl::StatusOr<std::vector<std::string>> StoreExchange::AllGather(absl::string_view key,
                                                                  absl::string_view value,
                                                                  absl::Duration timeout) {
  if (rank_ != 0) {
    RETURN_IF_ERROR(store_.Set(KeyOf(key, rank_), value));
    ASSIGN_OR_RETURN(const std::string all, store_.Get(ResultOf(key), timeout));
    return Split(all, size_);
  }
  ASSIGN_OR_RETURN(std::vector<std::string> values, Collect(key, value, timeout));
  RETURN_IF_ERROR(store_.Set(ResultOf(key), Join(values)));
  return values;
}

absl::StatusOr<collectives::KeyExchange::Selected> StoreExchange::Gather(
    absl::string_view key, absl::string_view value, const std::vector<int>& ranks,
    absl::Duration timeout) {
  RETURN_IF_ERROR(store_.Set(KeyOf(key, rank_), value));
  Selected selected;
  if (rank_ == 0) {
    ASSIGN_OR_RETURN(const std::vector<std::string> values, Collect(key, value, timeout));
    selected.all_equal = AreEqual(values);
    RETURN_IF_ERROR(store_.Set(ResultOf(key), selected.all_equal ? kSame : kDifferent));
  } else {
    ASSIGN_OR_RETURN(const std::string word, store_.Get(ResultOf(key), timeout));
    selected.all_equal = word == kSame;
  }
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size_) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no rank ", rank, " of ", size_, " to ask for its value"));
    }
    ASSIGN_OR_RETURN(std::string found, store_.Get(KeyOf(key, rank), timeout));
    selected.values.push_back(std::move(found));
  }
  return selected;
}

}  // namespace hvd::worker_runtime::group
