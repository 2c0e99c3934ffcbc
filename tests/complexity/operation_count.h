// A count of operations: of the basic blocks that the project's own code has run.
#ifndef TESTS_COMPLEXITY_OPERATION_COUNT_H_
#define TESTS_COMPLEXITY_OPERATION_COUNT_H_

#include <cstdint>

namespace hvd {

// Returns the count of this thread. It is the same in each run, unlike a time. Only a build with
// --config=counted counts; in any other the result is 0.
int64_t OperationCount();

}  // namespace hvd

#endif  // TESTS_COMPLEXITY_OPERATION_COUNT_H_
