#include "tests/complexity/operation_count.h"

namespace {

thread_local int64_t count = 0;

}  // namespace

// The compiler calls it at the start of each basic block (-fsanitize-coverage=trace-pc).
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" __attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc() { ++count; }

namespace hvd {

__attribute__((no_sanitize_coverage)) int64_t OperationCount() { return count; }

}  // namespace hvd
