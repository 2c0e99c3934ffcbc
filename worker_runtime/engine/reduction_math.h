// Arithmetic around a reduction: scaling, averaging, and the contribution of ranks that have
// joined.
#ifndef WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_
#define WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_

#include <cstddef>

#include "collectives/types.h"
#include "worker_runtime/negotiation/op_kind.h"

namespace hvd::worker_runtime::engine {

// Returns the reduction that a communicator computes: for an average, a sum.
// REQUIRES: not Adasum.
collectives::ReduceOp ToReduceOp(negotiation::Reduction reduction);

// Returns the factor for the sum over all ranks: `scale`, divided by `ranks` for an average.
double FactorOfSum(negotiation::Reduction reduction, double scale, int ranks);

// Multiplies by the postscale and, for an average, divides by `ranks`. Integers are truncated
// towards zero.
void FinishReduction(void* data, size_t count, collectives::DataType type,
                     negotiation::Reduction reduction, double postscale, int ranks);

// Fills the memory with the neutral element: 0 for a sum, the largest value for a minimum, etc.
void FillNeutral(void* data, size_t count, collectives::DataType type,
                 negotiation::Reduction reduction);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_
