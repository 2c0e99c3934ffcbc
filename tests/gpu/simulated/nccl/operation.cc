#include "tests/gpu/simulated/nccl/operation.h"

#include <cstring>
#include <optional>

#include "tests/gpu/simulated/driver/cuda_driver.h"

namespace simulated_gpu {
namespace {

using Outcome = Mesh::Outcome;

// Where the buffers of an operation are.
struct Buffers {
  char* in = nullptr;
  char* out = nullptr;
};

char* Find(const void* address, size_t bytes) {
  return bytes == 0 ? nullptr : static_cast<char*>(simulatedGpuFind(address, bytes));
}

struct Needs {
  size_t in;
  size_t out;
};

// The bytes that this rank reads and writes.
Needs NeedsOf(const Operation& operation, const Mesh& mesh) {
  const size_t bytes = operation.count * SizeOf(operation.type);
  const bool is_root = operation.peer == mesh.rank();
  switch (operation.kind) {
    case Operation::kAllReduce:
      return {bytes, bytes};
    case Operation::kBroadcast:
      return {is_root ? bytes : 0, bytes};
    case Operation::kReduce:
      return {bytes, is_root ? bytes : 0};
    case Operation::kAllGather:
      return {bytes, bytes * mesh.size()};
    case Operation::kReduceScatter:
      return {bytes * mesh.size(), bytes};
    case Operation::kSend:
      return {bytes, 0};
    case Operation::kReceive:
      return {0, bytes};
  }
  return {};
}

std::optional<Buffers> FindBuffers(const Operation& operation, const Mesh& mesh) {
  const Needs needs = NeedsOf(operation, mesh);
  const Buffers found = {Find(operation.in, needs.in), Find(operation.out, needs.out)};
  if ((needs.in > 0 && found.in == nullptr) || (needs.out > 0 && found.out == nullptr)) {
    simulatedGpuFault("NCCL's kernel was given an address that is not a device's");
    return std::nullopt;
  }
  return found;
}

// The first element of a rank's block, of `count` that are divided among the ranks.
size_t Start(size_t count, int rank, int size) { return count * rank / size; }

// A reduction of blocks of bytes, one for each rank; starts[r] is the first element of rank r's.
class Reduction {
 public:
  Reduction(Mesh& mesh, const Operation& operation, char* in, std::vector<size_t> starts)
      : mesh_(mesh), operation_(operation), in_(in), starts_(std::move(starts)) {}

  // Every rank gets its own block, reduced in the order of the ranks.
  Outcome Run() {
    Scale();
    const size_t unit = SizeOf(operation_.type);
    const size_t count = starts_[mesh_.rank() + 1] - starts_[mesh_.rank()];
    std::vector<char> parts(count * unit * mesh_.size());
    std::vector<Transfer> sends, receives;
    for (int r = 0; r < mesh_.size(); ++r) {
      sends.push_back({r, in_ + starts_[r] * unit, (starts_[r + 1] - starts_[r]) * unit});
      receives.push_back({r, parts.data() + r * count * unit, count * unit});
    }
    const Outcome outcome = mesh_.Exchange(sends, receives);
    if (outcome != Outcome::kDone) return outcome;
    for (int r = 1; r < mesh_.size(); ++r) {
      Combine(parts.data(), parts.data() + r * count * unit, count, operation_.type, operation_.op);
    }
    if (operation_.op == NcclOp::kAverage) {
      Divide(parts.data(), count, operation_.type, mesh_.size());
    }
    parts.resize(count * unit);
    own_ = std::move(parts);
    return outcome;
  }

  std::vector<char>& own() { return own_; }

 private:
  void Scale() {
    if (operation_.factor.empty()) return;
    const size_t count = starts_.back();
    scaled_.resize(count * SizeOf(operation_.type));
    Multiply(scaled_.data(), in_, count, operation_.type, operation_.factor.data());
    in_ = scaled_.data();
  }

  Mesh& mesh_;
  const Operation& operation_;
  char* in_;
  const std::vector<size_t> starts_;
  std::vector<char> scaled_, own_;
};

Outcome AllReduce(Mesh& mesh, const Operation& operation, const Buffers& buffers) {
  std::vector<size_t> starts;
  for (int r = 0; r <= mesh.size(); ++r) starts.push_back(Start(operation.count, r, mesh.size()));
  Reduction reduction(mesh, operation, buffers.in, starts);
  const Outcome outcome = reduction.Run();
  if (outcome != Outcome::kDone) return outcome;
  const size_t unit = SizeOf(operation.type);
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < mesh.size(); ++r) {
    sends.push_back({r, reduction.own().data(), reduction.own().size()});
    receives.push_back({r, buffers.out + starts[r] * unit, (starts[r + 1] - starts[r]) * unit});
  }
  return mesh.Exchange(sends, receives);
}

Outcome ReduceScatter(Mesh& mesh, const Operation& operation, const Buffers& buffers) {
  std::vector<size_t> starts;
  for (int r = 0; r <= mesh.size(); ++r) starts.push_back(r * operation.count);
  Reduction reduction(mesh, operation, buffers.in, starts);
  const Outcome outcome = reduction.Run();
  if (outcome == Outcome::kDone && !reduction.own().empty()) {
    std::memcpy(buffers.out, reduction.own().data(), reduction.own().size());
  }
  return outcome;
}

Outcome Reduce(Mesh& mesh, const Operation& operation, const Buffers& buffers) {
  std::vector<size_t> starts;
  for (int r = 0; r <= mesh.size(); ++r) starts.push_back(r > operation.peer ? operation.count : 0);
  Reduction reduction(mesh, operation, buffers.in, starts);
  const Outcome outcome = reduction.Run();
  if (outcome == Outcome::kDone && !reduction.own().empty()) {
    std::memcpy(buffers.out, reduction.own().data(), reduction.own().size());
  }
  return outcome;
}

Outcome Broadcast(Mesh& mesh, const Operation& operation, const Buffers& buffers) {
  const size_t bytes = operation.count * SizeOf(operation.type);
  std::vector<Transfer> sends;
  for (int r = 0; r < mesh.size() && operation.peer == mesh.rank(); ++r) {
    sends.push_back({r, buffers.in, bytes});
  }
  return mesh.Exchange(sends, {{operation.peer, buffers.out, bytes}});
}

Outcome AllGather(Mesh& mesh, const Operation& operation, const Buffers& buffers) {
  const size_t bytes = operation.count * SizeOf(operation.type);
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < mesh.size(); ++r) {
    sends.push_back({r, buffers.in, bytes});
    receives.push_back({r, buffers.out + r * bytes, bytes});
  }
  return mesh.Exchange(sends, receives);
}

Outcome RunCollective(Mesh& mesh, const Operation& operation, const Buffers& buffers) {
  switch (operation.kind) {
    case Operation::kAllReduce:
      return AllReduce(mesh, operation, buffers);
    case Operation::kBroadcast:
      return Broadcast(mesh, operation, buffers);
    case Operation::kReduce:
      return Reduce(mesh, operation, buffers);
    case Operation::kAllGather:
      return AllGather(mesh, operation, buffers);
    case Operation::kReduceScatter:
      return ReduceScatter(mesh, operation, buffers);
    case Operation::kSend:
    case Operation::kReceive:
      break;
  }
  return Outcome::kDone;
}

}  // namespace

Mesh::Outcome RunGroup(Mesh& mesh, const std::vector<Operation>& operations) {
  std::vector<Transfer> sends, receives;
  for (const Operation& operation : operations) {
    const std::optional<Buffers> buffers = FindBuffers(operation, mesh);
    if (!buffers.has_value()) return Outcome::kDone;
    const size_t bytes = operation.count * SizeOf(operation.type);
    if (operation.kind == Operation::kSend) {
      sends.push_back({operation.peer, buffers->in, bytes});
    } else if (operation.kind == Operation::kReceive) {
      receives.push_back({operation.peer, buffers->out, bytes});
    } else {
      const Outcome outcome = RunCollective(mesh, operation, *buffers);
      if (outcome != Outcome::kDone) return outcome;
    }
  }
  return sends.empty() && receives.empty() ? Outcome::kDone : mesh.Exchange(sends, receives);
}

}  // namespace simulated_gpu
