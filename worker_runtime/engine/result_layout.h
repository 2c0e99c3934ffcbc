// The sizes of each rank's part of a result, computed from the plan; for host and device tensors.
#ifndef WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_
#define WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "worker_runtime/engine/request.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::engine {

// The first three functions also fill in the shape of `result`. Pure.

// Returns the number of bytes that each rank contributes to an allgather.
std::vector<size_t> GatherLayout(const negotiation::PlannedTensor& planned, TensorResult& result);

// Returns the number of bytes that an alltoall sends to and receives from each peer. `own` is this
// rank's request. Also fills in the received splits.
struct ExchangeLayout {
  std::vector<size_t> send;
  std::vector<size_t> receive;
  bool is_empty = false;  // no rank sends anything
};
ExchangeLayout MakeExchangeLayout(const negotiation::PlannedTensor& planned,
                                  const negotiation::TensorSignature& own, TensorResult& result);

// Returns the number of elements that each rank keeps of a reducescatter.
std::vector<size_t> ScatterLayout(const negotiation::TensorSignature& signature, int rank, int size,
                                  TensorResult& result);

size_t SumOf(const std::vector<size_t>& numbers);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_
