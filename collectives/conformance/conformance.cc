#include "collectives/conformance/conformance.h"

#include <thread>  // NOLINT: ranks are threads

#include "collectives/conformance/memory_key_exchange.h"

namespace hvd {
namespace {

constexpr size_t kElements = 4;

template <typename F>
absl::Status WithBuffers(Communicator& communicator, F&& call) {
  std::vector<float> in(kElements * communicator.size(), 1), out(in.size());
  return call(in.data(), out.data());
}

std::vector<size_t> Same(Communicator& communicator, size_t count) {
  return std::vector<size_t>(communicator.size(), count);
}

absl::Status CallAllReduce(Communicator& c, int peer, const CallOptions& options) {
  return WithBuffers(c, [&](float* in, float* out) {
    return c.AllReduce(in, out, kElements, DataType::kFloat32, ReduceOp::kSum, options);
  });
}

absl::Status CallLargeAllReduce(Communicator& c, int peer, const CallOptions& options) {
  std::vector<float> data(1 << 20, 1);
  return c.AllReduce(data.data(), data.data(), data.size(), DataType::kFloat32, ReduceOp::kSum,
                     options);
}

absl::Status CallAllGather(Communicator& c, int peer, const CallOptions& options) {
  return WithBuffers(c, [&](float* in, float* out) {
    return c.AllGather(in, out, Same(c, kElements * sizeof(float)), options);
  });
}

// The root is the one that the others wait for.
absl::Status CallBroadcast(Communicator& c, int peer, const CallOptions& options) {
  return WithBuffers(c, [&](float* in, float* out) {
    return c.Broadcast(out, kElements * sizeof(float), peer, options);
  });
}

absl::Status CallAllToAll(Communicator& c, int peer, const CallOptions& options) {
  return WithBuffers(c, [&](float* in, float* out) {
    const auto bytes = Same(c, kElements * sizeof(float));
    return c.AllToAll(in, bytes, out, bytes, options);
  });
}

absl::Status CallReduceScatter(Communicator& c, int peer, const CallOptions& options) {
  return WithBuffers(c, [&](float* in, float* out) {
    return c.ReduceScatter(in, out, Same(c, kElements), DataType::kFloat32, ReduceOp::kSum,
                           options);
  });
}

absl::Status CallSendReceive(Communicator& c, int peer, const CallOptions& options) {
  return WithBuffers(c, [&](float* in, float* out) {
    return c.SendReceive(peer, in, out, kElements * sizeof(float), options);
  });
}

absl::Status CallBarrier(Communicator& c, int peer, const CallOptions& options) {
  return c.Barrier(options);
}

}  // namespace

void ForEachRank(int size, absl::FunctionRef<void(int)> work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&work, rank] { work(rank); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<absl::Status> RankGroup::Connect(const std::vector<std::string>& secrets) {
  const int size = static_cast<int>(secrets.size());
  const Epoch epoch(++epoch_);
  KeyExchangeTable keys(size);
  communicators_.clear();
  communicators_.resize(size);
  std::vector<absl::Status> statuses(size);
  ForEachRank(size, [&](int rank) {
    const GroupInfo info = {epoch, rank, size, "127.0.0.1", secrets[rank]};
    auto connected = backend_->Connect(info, *keys.ForRank(rank), absl::Seconds(60));
    statuses[rank] = connected.status();
    if (connected.ok()) communicators_[rank] = *std::move(connected);
  });
  key_exchanges_ = keys.calls();
  return statuses;
}

void RankGroup::Connect(int size) {
  for (const absl::Status& status : Connect(std::vector<std::string>(size, "secret"))) {
    ASSERT_TRUE(status.ok()) << status;
  }
}

void RankGroup::Run(absl::FunctionRef<void(Communicator&)> work) {
  ForEachRank(static_cast<int>(communicators_.size()), [&](int rank) { work(at(rank)); });
}

const std::vector<AnyOperation>& AllOperations() {
  static const auto* const operations = new std::vector<AnyOperation>{
      {"AllReduce", CallAllReduce},         {"large AllReduce", CallLargeAllReduce},
      {"AllGather", CallAllGather},         {"Broadcast", CallBroadcast},
      {"AllToAll", CallAllToAll},           {"ReduceScatter", CallReduceScatter},
      {"SendReceive", CallSendReceive},     {"Barrier", CallBarrier},
  };
  return *operations;
}

}  // namespace hvd
