#include "collectives/argument_checks.h"

#include "absl/strings/str_cat.h"

namespace hvd::collectives {

absl::Status CheckCounts(absl::Span<const size_t> counts, int size) {
  if (counts.size() == static_cast<size_t>(size)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("got ", counts.size(), " counts for ", size, " ranks"));
}

absl::Status CheckIsRank(int rank, int size) {
  if (rank >= 0 && rank < size) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("there is no rank ", rank, " of ", size));
}

}  // namespace hvd::collectives
