// The rank that a connection error is about, as a part of the error.
#ifndef COLLECTIVES_UNREACHED_RANK_H_
#define COLLECTIVES_UNREACHED_RANK_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvd::collectives {

// Returns the error, with `rank` as the one that was not reached. Only for errors that mean silence
// on the way to it: Unavailable and DeadlineExceeded; others are returned as they are.
absl::Status WithUnreachedRank(absl::Status error, int rank);

// Returns that rank; nullopt if the error is about none.
std::optional<int> UnreachedRankOf(const absl::Status& error);

// Returns the error with another text, about the same rank.
absl::Status WithText(const absl::Status& error, absl::string_view text);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_UNREACHED_RANK_H_
