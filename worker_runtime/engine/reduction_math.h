// The arithmetic around a reduction: scaling, averaging, and the contribution of absent ranks.
#ifndef WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_
#define WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_

#include <cstddef>

#include "collectives/types.h"
#include "worker_runtime/negotiation/op_kind.h"

namespace hvd::worker_runtime::engine {

// The reduction that ranks compute together; an average is a sum first. REQUIRES: not Adasum.
collectives::ReduceOp ToReduceOp(negotiation::Reduction reduction);

// The factor of a sum: `scale`; of an average, divided by `ranks`.
double FactorOfSum(negotiation::Reduction reduction, double scale, int ranks);

// Multiplies by the postscale and, for an average, divides by `ranks`. Integers are truncated
// towards zero.
void FinishReduction(void* data, size_t count, collectives::DataType type,
                     negotiation::Reduction reduction, double postscale, int ranks);

// Fills with the neutral element: 0 for sums, the largest value for a minimum, ...
void FillNeutral(void* data, size_t count, collectives::DataType type,
                 negotiation::Reduction reduction);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_REDUCTION_MATH_H_
