#include "collectives/key_exchange.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::collectives {

absl::StatusOr<KeyExchange::Selected> KeyExchange::Gather(absl::string_view key,
                                                          absl::string_view value,
                                                          const std::vector<int>& ranks,
                                                          absl::Duration timeout) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, AllGather(key, value, timeout));
  Selected selected;
  selected.all_equal =
      std::adjacent_find(all.begin(), all.end(), std::not_equal_to<>()) == all.end();
  for (const int rank : ranks) {
    if (rank < 0 || static_cast<size_t>(rank) >= all.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no rank ", rank, " of ", all.size(), " to ask for its value"));
    }
    selected.values.push_back(all[rank]);
  }
  return selected;
}

}  // namespace hvd::collectives
