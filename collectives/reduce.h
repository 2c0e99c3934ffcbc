// Element-wise reduction kernels on buffers of one process. Pure functions, safe for concurrent
// use.
#ifndef COLLECTIVES_REDUCE_H_
#define COLLECTIVES_REDUCE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "collectives/types.h"

namespace hvd::collectives {

// out[i] = a[i] op b[i] for i < count. `out` may equal `a` or `b`; otherwise the buffers don't
// overlap. Buffers need no alignment beyond that of the element type.
using ReduceFunction = void (*)(void* out, const void* a, const void* b, size_t count);

// The kernel for this CPU. Integers wrap around; a NaN on either side of a min or max gives NaN.
ReduceFunction GetReduceFunction(DataType type, ReduceOp op);

// The same kernel compiled for the architecture's baseline CPU. Tests compare it with the other.
ReduceFunction GetPortableReduceFunction(DataType type, ReduceOp op);

// Reduces any number of buffers at once, in their order. 16-bit floats are added as float and
// rounded once. Immutable.
class Reducer {
 public:
  // `portable`: see GetPortableReduceFunction.
  Reducer(DataType type, ReduceOp op, bool portable = false);

  // out[i] = sources[0][i] op sources[1][i] op ...; `out` may equal sources[0].
  // REQUIRES: at least two sources.
  void operator()(void* out, absl::Span<const void* const> sources, size_t count) const;

 private:
  size_t element_bytes_;
  ReduceFunction pair_;
  void (*all_)(void* out, absl::Span<const void* const> sources, size_t count) = nullptr;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_REDUCE_H_
