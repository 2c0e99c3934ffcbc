#include "worker_runtime/engine/result_layout.h"

#include <numeric>

namespace hvd::worker_runtime::engine {

std::vector<size_t> GatherLayout(const negotiation::PlannedTensor& planned, TensorResult& result) {
  const size_t row = negotiation::RowBytes(*planned.signature);
  std::vector<size_t> bytes;
  result.shape = planned.signature->shape;
  result.shape.front() = 0;
  for (int64_t rows : planned.first_dims) {
    bytes.push_back(static_cast<size_t>(rows) * row);
    result.shape.front() += rows;
  }
  return bytes;
}

ExchangeLayout MakeExchangeLayout(const negotiation::PlannedTensor& planned,
                                  const negotiation::TensorSignature& own, TensorResult& result) {
  const size_t row = negotiation::RowBytes(*planned.signature);
  const auto size = static_cast<int>(planned.received_splits.size());
  ExchangeLayout layout;
  result.shape = planned.signature->shape;
  result.shape.front() = 0;
  for (int peer = 0; peer < size; ++peer) {
    const int32_t rows = planned.received_splits[peer];
    // The own request has the rows that are sent; the plan has those that are received only.
    layout.send.push_back(static_cast<size_t>(negotiation::RowsTo(own, peer, size)) * row);
    layout.receive.push_back(static_cast<size_t>(rows) * row);
    result.received_splits.push_back(rows);
    result.shape.front() += rows;
  }
  layout.is_empty = planned.moves_nothing;
  return layout;
}

std::vector<size_t> ScatterLayout(const negotiation::TensorSignature& signature, int rank, int size,
                                  TensorResult& result) {
  const int64_t rows = signature.shape.front();
  const size_t row_elements =
      negotiation::RowBytes(signature) / collectives::SizeOf(signature.type);
  // If the rows can't be divided evenly, the first ranks get one more.
  const auto rows_of = [&](int64_t r) { return rows / size + (r < rows % size ? 1 : 0); };
  std::vector<size_t> counts;
  for (int r = 0; r < size; ++r) counts.push_back(rows_of(r) * row_elements);
  result.shape = signature.shape;
  result.shape.front() = rows_of(rank);
  return counts;
}

size_t SumOf(const std::vector<size_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), size_t{0});
}

}  // namespace hvd::worker_runtime::engine
