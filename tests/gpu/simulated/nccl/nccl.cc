// The functions of the simulated libnccl.so.2.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "tests/gpu/simulated/driver/cuda_driver.h"
#include "tests/gpu/simulated/nccl/communicator.h"
#include "tests/gpu/simulated/nccl/introduction.h"

namespace {

using hvd::collectives::nccl::NcclComm;
using hvd::collectives::nccl::NcclConfig;
using hvd::collectives::nccl::NcclOp;
using hvd::collectives::nccl::NcclResult;
using hvd::collectives::nccl::NcclType;
using hvd::collectives::nccl::NcclUniqueId;
using simulated_gpu::Communicator;
using simulated_gpu::Operation;

constexpr unsigned kConfigMagic = 0xcafebeef;

struct Member {
  std::shared_ptr<Communicator> communicator;
  bool is_blocking;
};

// All communicators that are neither aborted nor destroyed. Never destroyed itself.
struct Members {
  std::mutex mutex;
  std::map<NcclComm*, Member> by_handle;
};

Members& All() {
  static auto* const members = new Members;
  return *members;
}

// No communicator, if there is none with this handle.
Member Find(NcclComm* handle) {
  Members& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_handle.find(handle);
  if (found == all.by_handle.end()) {
    simulated_gpu::SetLastError("there is no such communicator");
    return {};
  }
  return found->second;
}

Member Take(NcclComm* handle) {
  const Member member = Find(handle);
  Members& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.by_handle.erase(handle);
  return member;
}

// What a call answers whose work has been started.
NcclResult Answer(const Member& member) {
  return member.is_blocking ? member.communicator->AwaitState() : member.communicator->state();
}

// ---- Groups: what a thread has called since its first ncclGroupStart.

struct Call {
  Member member;
  CudaStream* stream;
  Operation operation;
};

thread_local int depth = 0;
thread_local std::vector<Call> calls;

NcclResult LaunchCalls() {
  const std::vector<Call> all = std::exchange(calls, {});
  NcclResult result = NcclResult::kSuccess;
  std::vector<Member> members;
  for (size_t first = 0; first < all.size();) {
    size_t next = first;
    std::vector<Operation> operations;
    // Those of one communicator are one kernel.
    for (; next < all.size() && all[next].member.communicator == all[first].member.communicator &&
           all[next].stream == all[first].stream;
         ++next) {
      operations.push_back(all[next].operation);
    }
    all[first].member.communicator->Launch(std::move(operations), all[first].stream);
    members.push_back(all[first].member);
    first = next;
  }
  for (const Member& member : members) {
    const NcclResult answer = Answer(member);
    if (result == NcclResult::kSuccess || answer > result) result = answer;
  }
  return result;
}

bool HasItsRanks(const Operation& operation, const Communicator& communicator) {
  return operation.peer >= 0 && operation.peer < communicator.size();
}

NcclResult Enqueue(NcclComm* handle, CudaStream* stream, Operation operation) {
  const Member member = Find(handle);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  const NcclResult state = member.communicator->state();
  if (state != NcclResult::kSuccess && state != NcclResult::kInProgress) return state;
  if (simulated_gpu::SizeOf(operation.type) == 0 || !HasItsRanks(operation, *member.communicator) ||
      !member.communicator->Resolve(&operation)) {
    simulated_gpu::SetLastError("an argument is invalid");
    return NcclResult::kInvalidArgument;
  }
  calls.push_back({member, stream, std::move(operation)});
  return depth > 0 ? NcclResult::kSuccess : LaunchCalls();
}

NcclResult Init(NcclComm** comm, int ranks, const NcclUniqueId& id, int rank, bool is_blocking) {
  int device = -1;
  if (ranks < 1 || rank < 0 || rank >= ranks) return NcclResult::kInvalidArgument;
  if (cuCtxGetDevice(&device) != CudaResult::kSuccess) return NcclResult::kUnhandledCudaError;
  const std::string name(id.internal, strnlen(id.internal, sizeof(id.internal)));
  const Member member = {std::make_shared<Communicator>(name, rank, ranks, device), is_blocking};
  auto* const handle = reinterpret_cast<NcclComm*>(member.communicator.get());
  {
    Members& all = All();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.by_handle[handle] = member;
  }
  // Another thread may abort it while this one waits.
  __atomic_store_n(comm, handle, __ATOMIC_RELEASE);
  member.communicator->StartConnecting();
  return Answer(member);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = simulated_gpu::SimulatedNcclVersion();
  return NcclResult::kSuccess;
}

NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  std::random_device random;
  *id = {};
  const std::string name = "simulated-nccl-" + std::to_string(random()) + "-" +
                           std::to_string(random()) + "-" + std::to_string(random());
  std::memcpy(id->internal, name.data(), name.size());
  return NcclResult::kSuccess;
}

NcclResult ncclCommInitRankConfig(NcclComm** comm, int ranks, NcclUniqueId id, int rank,
                                  NcclConfig* config) {
  if (config->size < sizeof(NcclConfig) || config->magic != kConfigMagic) {
    return NcclResult::kInvalidArgument;
  }
  return Init(comm, ranks, id, rank, config->blocking != 0);
}

NcclResult ncclCommInitRank(NcclComm** comm, int ranks, NcclUniqueId id, int rank) {
  return Init(comm, ranks, id, rank, /*is_blocking=*/true);
}

NcclResult ncclCommFinalize(NcclComm* comm) {
  const Member member = Find(comm);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  member.communicator->StartFinalizing();
  return Answer(member);
}

NcclResult ncclCommDestroy(NcclComm* comm) {
  const Member member = Take(comm);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  member.communicator->Destroy();
  return NcclResult::kSuccess;
}

NcclResult ncclCommAbort(NcclComm* comm) {
  const Member member = Take(comm);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  member.communicator->Abort();
  return NcclResult::kSuccess;
}

NcclResult ncclCommGetAsyncError(NcclComm* comm, NcclResult* error) {
  const Member member = Find(comm);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  *error = member.communicator->state();
  return NcclResult::kSuccess;
}

NcclResult ncclCommCount(NcclComm* comm, int* count) {
  const Member member = Find(comm);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  *count = member.communicator->size();
  return NcclResult::kSuccess;
}

NcclResult ncclCommUserRank(NcclComm* comm, int* rank) {
  const Member member = Find(comm);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  *rank = member.communicator->rank();
  return NcclResult::kSuccess;
}

NcclResult ncclCommCuDevice(NcclComm* comm, int* device) {
  const Member member = Find(comm);
  if (member.communicator == nullptr) return NcclResult::kInvalidArgument;
  *device = member.communicator->device();
  return NcclResult::kSuccess;
}

const char* ncclGetErrorString(NcclResult result) {
  switch (result) {
    case NcclResult::kSuccess:
      return "no error";
    case NcclResult::kUnhandledCudaError:
      return "unhandled cuda error";
    case NcclResult::kSystemError:
      return "unhandled system error";
    case NcclResult::kInternalError:
      return "internal error";
    case NcclResult::kInvalidArgument:
      return "invalid argument";
    case NcclResult::kInvalidUsage:
      return "invalid usage";
    case NcclResult::kRemoteError:
      return "remote process exited or there was a network error";
    case NcclResult::kInProgress:
      return "NCCL operation in progress";
    case NcclResult::kTimeout:
      return "timeout";
  }
  return "unknown result code";
}

const char* ncclGetLastError(NcclComm*) { return simulated_gpu::LastError(); }

NcclResult ncclRedOpCreatePreMulSum(NcclOp* op, void* factor, NcclType type, int residence,
                                    NcclComm* comm) {
  const Member member = Find(comm);
  const size_t bytes = simulated_gpu::SizeOf(type);
  if (member.communicator == nullptr || bytes == 0 ||
      residence != hvd::collectives::nccl::kNcclScalarOnHost) {
    return NcclResult::kInvalidArgument;
  }
  const char* const value = static_cast<const char*>(factor);
  *op = member.communicator->MakeOp(std::vector<char>(value, value + bytes));
  return NcclResult::kSuccess;
}

NcclResult ncclRedOpDestroy(NcclOp op, NcclComm* comm) {
  const Member member = Find(comm);
  if (member.communicator == nullptr || !member.communicator->DropOp(op)) {
    return NcclResult::kInvalidArgument;
  }
  return NcclResult::kSuccess;
}

NcclResult ncclAllReduce(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                         NcclComm* comm, CudaStream* stream) {
  return Enqueue(comm, stream, {Operation::kAllReduce, in, out, count, type, op});
}

NcclResult ncclBroadcast(const void* in, void* out, size_t count, NcclType type, int root,
                         NcclComm* comm, CudaStream* stream) {
  return Enqueue(comm, stream, {Operation::kBroadcast, in, out, count, type, NcclOp::kSum, root});
}

NcclResult ncclReduce(const void* in, void* out, size_t count, NcclType type, NcclOp op, int root,
                      NcclComm* comm, CudaStream* stream) {
  return Enqueue(comm, stream, {Operation::kReduce, in, out, count, type, op, root});
}

NcclResult ncclAllGather(const void* in, void* out, size_t count, NcclType type, NcclComm* comm,
                         CudaStream* stream) {
  return Enqueue(comm, stream, {Operation::kAllGather, in, out, count, type});
}

NcclResult ncclReduceScatter(const void* in, void* out, size_t count, NcclType type, NcclOp op,
                             NcclComm* comm, CudaStream* stream) {
  return Enqueue(comm, stream, {Operation::kReduceScatter, in, out, count, type, op});
}

NcclResult ncclSend(const void* in, size_t count, NcclType type, int peer, NcclComm* comm,
                    CudaStream* stream) {
  return Enqueue(comm, stream, {Operation::kSend, in, nullptr, count, type, NcclOp::kSum, peer});
}

NcclResult ncclRecv(void* out, size_t count, NcclType type, int peer, NcclComm* comm,
                    CudaStream* stream) {
  return Enqueue(comm, stream,
                 {Operation::kReceive, nullptr, out, count, type, NcclOp::kSum, peer});
}

NcclResult ncclGroupStart() {
  ++depth;
  return NcclResult::kSuccess;
}

NcclResult ncclGroupEnd() {
  if (depth == 0) return NcclResult::kInvalidUsage;
  return --depth > 0 ? NcclResult::kSuccess : LaunchCalls();
}
}
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
