// The multiplication of a buffer by a factor. Pure, safe for concurrent use.
#ifndef COLLECTIVES_SCALE_H_
#define COLLECTIVES_SCALE_H_

#include <cstddef>

#include "collectives/types.h"

namespace hvd::collectives {

// Multiplies every element by `factor`. 16-bit floats are multiplied as float; integers as double,
// then truncated towards zero and clamped to the type's range. Booleans keep their value unless
// factor is 0, which makes them false.
void Scale(void* data, size_t count, DataType type, double factor);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_SCALE_H_
