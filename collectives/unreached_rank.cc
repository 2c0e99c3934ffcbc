#include "collectives/unreached_rank.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hvd::collectives {
namespace {

constexpr char kPayload[] = "hvd/unreached-rank";

}  // namespace

absl::Status WithUnreachedRank(absl::Status error, int rank) {
  if (absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error))
    error.SetPayload(kPayload, absl::Cord(absl::StrCat(rank)));
  return error;
}

std::optional<int> UnreachedRankOf(const absl::Status& error) {
  const absl::optional<absl::Cord> payload = error.GetPayload(kPayload);
  int rank = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) return std::nullopt;
  return rank;
}

absl::Status WithText(const absl::Status& error, absl::string_view text) {
  const absl::Status changed(error.code(), text);
  const std::optional<int> rank = UnreachedRankOf(error);
  return rank.has_value() ? WithUnreachedRank(changed, *rank) : changed;
}

}  // namespace hvd::collectives
