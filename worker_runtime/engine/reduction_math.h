// Arithmetic around a reduction: scaling, averaging, and the contribution of ranks that have
// joined.
#ifndef WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_
#define WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_

#include <cstddef>
#include <cstdint>

#include "collectives/types.h"
#include "worker_runtime/negotiation/op_kind.h"

namespace hvd::worker_runtime::engine {

// Returns the reduction that a communicator computes: for an average, a sum.
// REQUIRES: not Adasum.
collectives::ReduceOp ToReduceOp(negotiation::Reduction reduction);

// Returns the factor for the sum over all ranks: `scale`, divided by `ranks` for an average.
double FactorOfSum(negotiation::Reduction reduction, double scale, int ranks);

// Returns whether the sum that an average needs may exceed the tensor's type, although the average
// does not. Such a sum is computed with 64 bits. Sums of 64-bit numbers wrap around.
bool NeedsWideSum(negotiation::Reduction reduction, collectives::DataType type);

// Converts from and to the numbers of such a sum. `type` is that of a tensor with NeedsWideSum.
void Widen(const void* from, size_t count, collectives::DataType type, int64_t* to);
void Narrow(const int64_t* from, size_t count, collectives::DataType type, void* to);

// Multiplies by the postscale and, for an average, divides by `ranks`. Integers are truncated
// towards zero.
void FinishReduction(void* data, size_t count, collectives::DataType type,
                     negotiation::Reduction reduction, double postscale, int ranks);

// Fills the memory with the neutral element: 0 for a sum, the largest value for a minimum, etc.
void FillNeutral(void* data, size_t count, collectives::DataType type,
                 negotiation::Reduction reduction);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_
