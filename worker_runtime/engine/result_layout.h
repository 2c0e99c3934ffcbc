// The layout of a result by rank, from the plan: the same for tensors in any memory.
#ifndef WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_
#define WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "worker_runtime/engine/request.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::engine {

// Each of these also fills in the shape of `result`. Pure.

// The number of bytes of each rank in an allgather.
std::vector<size_t> GatherLayout(const negotiation::PlannedTensor& planned, TensorResult& result);

// The bytes that an alltoall moves, by peer; `own` is this rank's request. Fills in the received
// splits as well.
struct ExchangeLayout {
  std::vector<size_t> send;
  std::vector<size_t> receive;
  bool is_empty = false;  // no rank sends anything
};
ExchangeLayout MakeExchangeLayout(const negotiation::PlannedTensor& planned,
                                  const negotiation::TensorSignature& own, TensorResult& result);

// The number of elements that each rank keeps of a reducescatter.
std::vector<size_t> ScatterLayout(const negotiation::TensorSignature& signature, int rank, int size,
                                  TensorResult& result);

size_t SumOf(const std::vector<size_t>& numbers);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_
