#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "collectives/float16.h"
#include "collectives/nccl/testing/fake_world.h"
#include "collectives/reduce.h"
#include "collectives/scale.h"

namespace hvd::collectives::nccl {
namespace {

using Bytes = std::vector<char>;
using Launches = std::map<int, FakeLaunchPtr>;

// The calls of this thread since it started a group.
struct Pending {
  NcclComm* comm;
  CudaStream* stream;
  FakeLaunchPtr launch;
};
thread_local int group_depth = 0;
thread_local std::vector<Pending> group_calls;

DataType TypeOf(NcclType type) {
  switch (type) {
    case NcclType::kInt8:
      return DataType::kInt8;
    case NcclType::kInt32:
      return DataType::kInt32;
    case NcclType::kInt64:
      return DataType::kInt64;
    case NcclType::kFloat16:
      return DataType::kFloat16;
    case NcclType::kFloat32:
      return DataType::kFloat32;
    case NcclType::kFloat64:
      return DataType::kFloat64;
    case NcclType::kBfloat16:
      return DataType::kBfloat16;
    default:
      return DataType::kUint8;
  }
}

ReduceOp OpOf(NcclOp op) {
  if (op == NcclOp::kMin) return ReduceOp::kMin;
  if (op == NcclOp::kMax) return ReduceOp::kMax;
  return op == NcclOp::kProduct ? ReduceOp::kProduct : ReduceOp::kSum;
}

size_t BytesOf(const FakeLaunch& launch) { return launch.count * SizeOf(TypeOf(launch.type)); }

bool IsPairwise(const FakeLaunch& launch) {
  return launch.kind == FakeLaunch::kSend || launch.kind == FakeLaunch::kReceive;
}

Bytes Reduced(const Launches& parts, size_t count) {
  Bytes result;
  for (const auto& [rank, part] : parts) {
    const DataType type = TypeOf(part->type);
    const char* in = static_cast<const char*>(part->in);
    Bytes own(in, in + count * SizeOf(type));
    if (part->factor != 1.0) Scale(own.data(), count, type, part->factor);
    if (result.empty()) {
      result = std::move(own);
    } else {
      GetReduceFunction(type, OpOf(part->op))(result.data(), result.data(), own.data(), count);
    }
  }
  return result;
}

// Runs one collective that all ranks have called.
void Perform(const Launches& parts) {
  const FakeLaunch& first = *parts.begin()->second;
  const size_t bytes = BytesOf(first);
  Bytes result;
  if (first.kind == FakeLaunch::kAllReduce || first.kind == FakeLaunch::kReduce) {
    result = Reduced(parts, first.count);
  } else if (first.kind == FakeLaunch::kReduceScatter) {
    result = Reduced(parts, first.count * parts.size());
  } else if (first.kind == FakeLaunch::kBroadcast) {
    const char* in = static_cast<const char*>(parts.at(first.root)->in);
    result.assign(in, in + bytes);
  } else {
    for (const auto& [rank, part] : parts) {
      const char* in = static_cast<const char*>(part->in);
      result.insert(result.end(), in, in + bytes);
    }
  }
  for (const auto& [rank, part] : parts) {
    part->done = true;
    if (part->kind == FakeLaunch::kReduce && rank != part->root) continue;
    if (part->kind == FakeLaunch::kReduceScatter) {
      std::memcpy(part->out, result.data() + rank * bytes, bytes);
    } else {
      std::memcpy(part->out, result.data(), result.size());
    }
  }
}

// Adds a rank's kernel, which has started, to those of the other ranks.
void Post(FakeGroup& group, int rank, const FakeLaunchPtr& launch, bool may_end) {
  if (!IsPairwise(*launch)) {
    const size_t number = group.posted[rank]++;
    Launches& parts = group.meeting[number];
    parts[rank] = launch;
    if (may_end && static_cast<int>(parts.size()) == group.size) {
      Perform(parts);
      group.meeting.erase(number);
    }
    return;
  }
  const bool sends = launch->kind == FakeLaunch::kSend;
  const auto pair = sends ? std::pair(rank, launch->root) : std::pair(launch->root, rank);
  (sends ? group.sends : group.receives)[pair].push_back(launch);
  auto& from = group.sends[pair];
  auto& to = group.receives[pair];
  while (may_end && !from.empty() && !to.empty()) {
    std::memmove(to.front()->out, from.front()->in,
                 std::min(BytesOf(*from.front()), BytesOf(*to.front())));
    from.front()->done = to.front()->done = true;
    from.pop_front();
    to.pop_front();
  }
}

// The result of a call that has succeeded.
NcclResult Success(const FakeWorld& world) ABSL_EXCLUSIVE_LOCKS_REQUIRED(world.mutex) {
  return world.faults.success_is_in_progress ? NcclResult::kInProgress : NcclResult::kSuccess;
}

NcclResult Launch(NcclComm* comm, CudaStream* stream, FakeLaunch launch) {
  NcclResult result = NcclResult::kSuccess;
  {
    FakeWorld& world = FakeWorld::Get();
    absl::MutexLock lock(&world.mutex);
    if (world.comms.count(comm) == 0 || group_depth == 0) return NcclResult::kInvalidUsage;
    const auto made = comm->factors.find(static_cast<int>(launch.op));
    if (made != comm->factors.end()) {
      launch.factor = made->second;
    } else if (static_cast<int>(launch.op) > static_cast<int>(NcclOp::kAverage)) {
      return NcclResult::kInvalidArgument;
    }
    result = Success(world);
  }
  group_calls.push_back({comm, stream, std::make_shared<FakeLaunch>(launch)});
  return result;
}

NcclResult GroupStart() {
  ++group_depth;
  return NcclResult::kSuccess;
}

// Whether some pending work can't be finished any more.
bool IsCutOff(const NcclComm& comm) {
  const FakeGroup& group = *comm.group;
  return std::any_of(comm.launches.begin(), comm.launches.end(), [&](const FakeLaunchPtr& launch) {
    if (launch->done) return false;
    if (!group.aborted.empty()) return true;
    return IsPairwise(*launch) ? group.left.count(launch->root) > 0 : !group.left.empty();
  });
}

// All calls of a group start at once and are one piece of the stream's work.
NcclResult GroupEnd() {
  --group_depth;
  const std::vector<Pending> calls = std::move(group_calls);
  group_calls.clear();
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("ncclGroupEnd");
  if (calls.empty()) return NcclResult::kSuccess;
  if (world.faults.call_error != NcclResult::kSuccess) return world.faults.call_error;
  NcclComm* const comm = calls.front().comm;
  const std::shared_ptr<FakeGroup> group = comm->group;
  const int rank = comm->rank;
  if (world.faults.group_end_blocks) {
    const auto aborted = [&] { return group->aborted.count(rank) > 0; };
    world.mutex.Await(absl::Condition(&aborted));
    return NcclResult::kInternalError;
  }
  std::vector<FakeLaunchPtr> launches;
  for (const Pending& call : calls) launches.push_back(call.launch);
  comm->launches.erase(std::remove_if(comm->launches.begin(), comm->launches.end(),
                                      [](const FakeLaunchPtr& launch) { return launch->done; }),
                       comm->launches.end());
  comm->launches.insert(comm->launches.end(), launches.begin(), launches.end());
  const bool may_end = !world.faults.operations_never_end;
  calls.front().stream->work.push_back(
      {[=] {
         for (const FakeLaunchPtr& launch : launches) {
           if (!launch->done) Post(*group, rank, launch, may_end);
         }
       },
       [=] {
         return std::all_of(launches.begin(), launches.end(),
                            [](const FakeLaunchPtr& launch) { return launch->done; });
       }});
  world.Pump();
  if (!world.faults.calls_block) return NcclResult::kInProgress;
  const auto is_aborted = [&] { return group->aborted.count(rank) > 0; };
  const auto is_over = [&] {
    return is_aborted() || IsCutOff(*comm) ||
           std::all_of(launches.begin(), launches.end(),
                       [](const FakeLaunchPtr& launch) { return launch->done; });
  };
  world.mutex.Await(absl::Condition(&is_over));
  if (is_aborted()) return NcclResult::kInternalError;
  return IsCutOff(*comm) ? NcclResult::kRemoteError : NcclResult::kSuccess;
}

NcclResult InitRank(NcclComm** comm, int ranks, NcclUniqueId id, int rank, NcclConfig* config) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("ncclCommInitRankConfig");
  if (config->size != 24 || config->magic != 0xcafebeef || config->blocking != 0) {
    return NcclResult::kInvalidArgument;
  }
  std::shared_ptr<FakeGroup>& group = world.groups[std::string(id.internal, sizeof(id.internal))];
  if (group == nullptr) group = std::make_shared<FakeGroup>(ranks);
  const FakeGpu::Faults& faults = world.faults;
  group->joined.insert(rank);
  const bool fails = faults.init_error_rank < 0 || faults.init_error_rank == rank;
  if (fails && faults.init_error != NcclResult::kSuccess) return faults.init_error;
  const bool blocks = faults.calls_block, shows_nothing = faults.init_shows_nothing;
  const auto show = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(world.mutex) {
    auto* const made = new NcclComm{group, rank, {}, {}};
    world.comms.insert(made);
    // A thread that aborts it may read it meanwhile.
    __atomic_store_n(comm, made, __ATOMIC_RELEASE);
  };
  if (!shows_nothing) show();
  if (!blocks) return NcclResult::kInProgress;
  const std::shared_ptr<FakeGroup> joined = group;
  const auto may_end = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(world.mutex) {
    const bool all = static_cast<int>(joined->joined.size()) == joined->size;
    return joined->aborted.count(rank) > 0 || (all && !world.faults.init_never_ends);
  };
  world.mutex.Await(absl::Condition(&may_end));
  if (joined->aborted.count(rank) > 0) return NcclResult::kInternalError;
  if (shows_nothing) show();
  return NcclResult::kSuccess;
}

// The communicator is gone, and its kernels with it.
void Free(FakeWorld& world, NcclComm* comm) ABSL_EXCLUSIVE_LOCKS_REQUIRED(world.mutex) {
  FakeGroup& group = *comm->group;
  for (const FakeLaunchPtr& launch : comm->launches) launch->done = true;
  const auto is_ours = [&](const FakeLaunchPtr& launch) {
    return std::find(comm->launches.begin(), comm->launches.end(), launch) != comm->launches.end();
  };
  for (auto& [number, parts] : group.meeting) parts.erase(comm->rank);
  for (auto* queues : {&group.sends, &group.receives}) {
    for (auto& [pair, queue] : *queues) {
      queue.erase(std::remove_if(queue.begin(), queue.end(), is_ours), queue.end());
    }
  }
  world.comms.erase(comm);
  delete comm;
  world.Pump();
}

NcclResult Abort(NcclComm* comm) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("ncclCommAbort");
  const auto may_end = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(world.mutex) {
    return !world.faults.abort_blocks;
  };
  world.mutex.Await(absl::Condition(&may_end));
  if (world.comms.count(comm) == 0) return NcclResult::kInvalidArgument;
  comm->group->aborted.insert(comm->rank);
  Free(world, comm);
  return NcclResult::kSuccess;
}

NcclResult Finalize(NcclComm* comm) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("ncclCommFinalize");
  return world.comms.count(comm) > 0 ? NcclResult::kInProgress : NcclResult::kInvalidArgument;
}

NcclResult Destroy(NcclComm* comm) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("ncclCommDestroy");
  if (world.comms.count(comm) == 0) return NcclResult::kInvalidArgument;
  comm->group->left.insert(comm->rank);
  Free(world, comm);
  return Success(world);
}

NcclResult GetAsyncError(NcclComm* comm, NcclResult* error) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  if (world.comms.count(comm) == 0) return NcclResult::kInvalidArgument;
  const FakeGpu::Faults& faults = world.faults;
  const bool all_joined = static_cast<int>(comm->group->joined.size()) == comm->group->size;
  const bool finalizes = world.calls["ncclCommFinalize"] > 0;
  if (faults.async_error != NcclResult::kSuccess) {
    *error = faults.async_error;
  } else if (IsCutOff(*comm)) {
    *error = NcclResult::kRemoteError;
  } else if (!all_joined || faults.init_never_ends || faults.calls_stay_in_progress ||
             (faults.finalize_never_ends && finalizes)) {
    *error = NcclResult::kInProgress;
  } else {
    *error = NcclResult::kSuccess;
  }
  return NcclResult::kSuccess;
}

NcclResult CreatePreMulSum(NcclOp* op, void* factor, NcclType type, int residence, NcclComm* comm) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("ncclRedOpCreatePreMulSum");
  if (residence != kNcclScalarOnHost) return NcclResult::kInvalidArgument;
  double value = 0;
  if (type == NcclType::kFloat64) std::memcpy(&value, factor, sizeof(value));
  if (type == NcclType::kFloat32) value = *static_cast<float*>(factor);
  if (type == NcclType::kFloat16) value = static_cast<Float16*>(factor)->ToFloat();
  if (type == NcclType::kBfloat16) value = static_cast<Bfloat16*>(factor)->ToFloat();
  const int made = 5 + static_cast<int>(comm->factors.size());
  comm->factors[made] = value;
  *op = static_cast<NcclOp>(made);
  return NcclResult::kSuccess;
}

NcclResult DestroyOp(NcclOp op, NcclComm* comm) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("ncclRedOpDestroy");
  return comm->factors.erase(static_cast<int>(op)) > 0 ? NcclResult::kSuccess
                                                       : NcclResult::kInvalidArgument;
}

NcclResult GetUniqueId(NcclUniqueId* id) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  std::memset(id->internal, 0, sizeof(id->internal));
  const std::string text = absl::StrCat("fake ", ++world.ids);
  std::memcpy(id->internal, text.data(), text.size());
  return NcclResult::kSuccess;
}

}  // namespace

NcclFunctions FakeNcclFunctions() {
  NcclFunctions f;
  f.get_version = [](int* version) {
    *version = 22307;
    return NcclResult::kSuccess;
  };
  f.get_unique_id = GetUniqueId;
  f.comm_init_rank_config = InitRank;
  f.comm_finalize = Finalize;
  f.comm_destroy = Destroy;
  f.comm_abort = Abort;
  f.comm_get_async_error = GetAsyncError;
  f.get_error_string = [](NcclResult) { return "a fake error"; };
  f.get_last_error = [](NcclComm*) { return "with a detail"; };
  f.red_op_create_pre_mul_sum = CreatePreMulSum;
  f.red_op_destroy = DestroyOp;
  f.all_reduce = [](const void* in, void* out, size_t count, NcclType type, NcclOp op,
                    NcclComm* comm, CudaStream* stream) {
    return Launch(comm, stream, {FakeLaunch::kAllReduce, in, out, count, type, op});
  };
  f.broadcast = [](const void* in, void* out, size_t count, NcclType type, int root, NcclComm* comm,
                   CudaStream* stream) {
    return Launch(comm, stream,
                  {FakeLaunch::kBroadcast, in, out, count, type, NcclOp::kSum, 1.0, root});
  };
  f.reduce = [](const void* in, void* out, size_t count, NcclType type, NcclOp op, int root,
                NcclComm* comm, CudaStream* stream) {
    return Launch(comm, stream, {FakeLaunch::kReduce, in, out, count, type, op, 1.0, root});
  };
  f.all_gather = [](const void* in, void* out, size_t count, NcclType type, NcclComm* comm,
                    CudaStream* stream) {
    return Launch(comm, stream, {FakeLaunch::kAllGather, in, out, count, type});
  };
  f.reduce_scatter = [](const void* in, void* out, size_t count, NcclType type, NcclOp op,
                        NcclComm* comm, CudaStream* stream) {
    return Launch(comm, stream, {FakeLaunch::kReduceScatter, in, out, count, type, op});
  };
  f.send = [](const void* in, size_t count, NcclType type, int peer, NcclComm* comm,
              CudaStream* stream) {
    return Launch(comm, stream,
                  {FakeLaunch::kSend, in, nullptr, count, type, NcclOp::kSum, 1.0, peer});
  };
  f.recv = [](void* out, size_t count, NcclType type, int peer, NcclComm* comm,
              CudaStream* stream) {
    return Launch(comm, stream,
                  {FakeLaunch::kReceive, nullptr, out, count, type, NcclOp::kSum, 1.0, peer});
  };
  f.group_start = GroupStart;
  f.group_end = GroupEnd;
  return f;
}

}  // namespace hvd::collectives::nccl
