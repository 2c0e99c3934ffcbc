// Which part of a result comes from where, as the plan says: the same for tensors in any memory.
#ifndef WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_
#define WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "worker_runtime/engine/request.h"
#include "worker_runtime/negotiation/messages.h"

namespace hvd::worker_runtime::engine {

// Each of these also fills in the shape of `result`. Pure.

// How many bytes each rank gives to an allgather.
std::vector<size_t> GatherLayout(const negotiation::PlannedTensor& planned, TensorResult& result);

// What an alltoall moves, in bytes by peer, if `own` is what this rank has asked for. Fills in the
// received splits as well.
struct ExchangeLayout {
  std::vector<size_t> send;
  std::vector<size_t> receive;
  bool is_empty = false;  // no rank sends anything
};
ExchangeLayout MakeExchangeLayout(const negotiation::PlannedTensor& planned,
                                  const negotiation::TensorSignature& own, TensorResult& result);

// How many elements each rank keeps of a reducescatter.
std::vector<size_t> ScatterLayout(const negotiation::TensorSignature& signature, int rank, int size,
                                  TensorResult& result);

size_t SumOf(const std::vector<size_t>& numbers);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_RESULT_LAYOUT_H_
