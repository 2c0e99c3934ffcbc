#include "collectives/conformance/conformance.h"

namespace hvd::collectives::conformance {
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

// The root is `peer`, the rank that the others wait for.
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

const std::vector<AnyOperation>& AllOperations() {
  static const auto* const operations = new std::vector<AnyOperation>{
      {"AllReduce", CallAllReduce},     {"large AllReduce", CallLargeAllReduce},
      {"AllGather", CallAllGather},     {"Broadcast", CallBroadcast},
      {"AllToAll", CallAllToAll},       {"ReduceScatter", CallReduceScatter},
      {"SendReceive", CallSendReceive}, {"Barrier", CallBarrier},
  };
  return *operations;
}

}  // namespace hvd::collectives::conformance
