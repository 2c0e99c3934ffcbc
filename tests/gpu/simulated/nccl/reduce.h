// The arithmetic of the simulated NCCL's reductions, in host memory.
#ifndef TESTS_GPU_SIMULATED_NCCL_REDUCE_H_
#define TESTS_GPU_SIMULATED_NCCL_REDUCE_H_

#include <cstddef>

#include "collectives/nccl/abi.h"

namespace simulated_gpu {

using hvd::collectives::nccl::NcclOp;
using hvd::collectives::nccl::NcclType;

// 0: there is no such type.
size_t SizeOf(NcclType type);

// into[i] = into[i] OP from[i]. An average counts as a sum.
void Combine(void* into, const void* from, size_t count, NcclType type, NcclOp op);
// values[i] /= ranks; integers are rounded towards 0.
void Divide(void* values, size_t count, NcclType type, int ranks);
// to[i] = from[i] * factor, where `factor` points to a value of the type.
void Multiply(void* to, const void* from, size_t count, NcclType type, const void* factor);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_NCCL_REDUCE_H_
