// Argument checks of collectives. The engine validates all arguments before, so a failed check is a
// bug.
#ifndef COLLECTIVES_ARGUMENT_CHECKS_H_
#define COLLECTIVES_ARGUMENT_CHECKS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace hvd::collectives {

// Checks that there is one count for each of the `size` ranks.
// Errors:
//   - Internal: the numbers differ.
absl::Status CheckCounts(absl::Span<const size_t> counts, int size);

// Checks that `rank` is one of the `size` ranks.
// Errors:
//   - Internal: `rank` is out of range.
absl::Status CheckIsRank(int rank, int size);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_ARGUMENT_CHECKS_H_
