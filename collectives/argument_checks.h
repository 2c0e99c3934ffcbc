// Checks of a collective's arguments.
#ifndef COLLECTIVES_ARGUMENT_CHECKS_H_
#define COLLECTIVES_ARGUMENT_CHECKS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace hvd::collectives {

// Errors of both:
//   - Internal: the condition does not hold; the engine never lets that happen.

// Checks that there is one count for each of the `size` ranks.
absl::Status CheckCounts(absl::Span<const size_t> counts, int size);
// Checks that `rank` is one of the `size` ranks.
absl::Status CheckIsRank(int rank, int size);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_ARGUMENT_CHECKS_H_
