#include "worker_runtime/api/hvd_c_api.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "collectives/nccl/nccl_backend.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/runtime.h"

namespace runtime = hvd::worker_runtime;

namespace {

using hvd::rendezvous::placement::Placement;
using runtime::api::ActiveWorld;
using runtime::api::Guarded;
using runtime::api::Runtime;
using runtime::api::TheRuntime;
using runtime::api::WithWorld;
using runtime::engine::TensorMemory;
using runtime::engine::TensorRequest;
using runtime::engine::TensorResult;
using runtime::negotiation::OpKind;
using runtime::negotiation::SignaturePtr;
using runtime::negotiation::TensorSignature;

static_assert(HVD_FIRST_HANDLE == Runtime::kFirstHandle);
static_assert(HVD_ALLREDUCE == static_cast<int>(OpKind::kAllReduce));
static_assert(HVD_ALLGATHER == static_cast<int>(OpKind::kAllGather));
static_assert(HVD_BROADCAST == static_cast<int>(OpKind::kBroadcast));
static_assert(HVD_ALLTOALL == static_cast<int>(OpKind::kAllToAll));
static_assert(HVD_REDUCESCATTER == static_cast<int>(OpKind::kReduceScatter));
static_assert(HVD_BARRIER == static_cast<int>(OpKind::kBarrier));
static_assert(HVD_JOIN == static_cast<int>(OpKind::kJoin));
// The numbers of the C ABI are those of the enum, since ToRequest casts them. This one fails if an
// operation is added without a number in the ABI.
static_assert(HVD_COMMIT + 1 == runtime::negotiation::kOpKindCount);

// Returns the handle that function() returns, or minus its status code.
template <typename Function>
int64_t HandleOf(Function function) {
  int64_t handle = 0;
  const int32_t refused = Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(handle, function());
    return absl::OkStatus();
  });
  return refused == HVD_OK ? handle : -refused;
}

template <typename Function>
int32_t Query(Function function, int32_t without_world) {
  // Held during the call: another thread may leave the world meanwhile.
  const std::shared_ptr<ActiveWorld> active = TheRuntime().active();
  return active == nullptr ? without_world : function(*active);
}

template <typename Function>
int32_t QueryPlace(Function function, int32_t without_place) {
  const std::optional<Placement> place = TheRuntime().place();
  return place.has_value() ? function(*place) : without_place;
}

absl::StatusOr<TensorRequest> ToRequest(const hvd_request& from) {
  if (from.name == nullptr || from.ndim < 0 || (from.ndim > 0 && from.shape == nullptr)) {
    return absl::InvalidArgumentError("a request needs a name and a shape");
  }
  // Before the casts below: the enumerators are indices into tables.
  if (from.op < HVD_ALLREDUCE || from.op >= runtime::negotiation::kOpKindCount ||
      from.dtype < HVD_UINT8 || from.dtype > HVD_BOOL || from.reduction < HVD_AVERAGE ||
      from.reduction > HVD_PRODUCT) {
    return absl::InvalidArgumentError("operation, element type or reduction out of range");
  }
  if (from.splits_count < 0 || (from.splits_count > 0 && from.splits == nullptr)) {
    return absl::InvalidArgumentError("splits are missing");
  }
  TensorRequest to;
  to.name = from.name;
  to.op = static_cast<OpKind>(from.op);
  to.type = static_cast<hvd::collectives::DataType>(from.dtype);
  to.shape.assign(from.shape, from.shape + from.ndim);
  to.input = from.input;
  to.output = from.output;
  to.reduction = static_cast<runtime::negotiation::Reduction>(from.reduction);
  to.prescale = from.prescale;
  to.postscale = from.postscale;
  to.root_rank = from.root_rank;
  to.splits.assign(from.splits, from.splits + from.splits_count);
  to.on_device = from.device != HVD_HOST;
  to.device = from.device;
  to.ready_event = from.ready_event;
  to.output_bytes = static_cast<size_t>(from.output_bytes);
  if (from.meaning != nullptr) to.meaning = from.meaning;
  return to;
}

absl::StatusOr<std::vector<TensorRequest>> ToRequests(const hvd_request* from, int32_t count) {
  std::vector<TensorRequest> to;
  // A negative count is an empty request, which Submit refuses with a text.
  to.reserve(std::max(count, 0));
  for (int32_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(TensorRequest request, ToRequest(from[i]));
    to.push_back(std::move(request));
  }
  return to;
}

// Waits for the groups of these handles, then calls function() and returns its code. Returns
// HVD_STILL_RUNNING if a wait ended early, so that the caller can handle signals.
template <typename Function>
int32_t AWhile(absl::Span<const int64_t> handles, absl::Duration most, Function function) {
  bool done = true;
  const int32_t code = Guarded([&]() -> absl::Status {
    for (auto handle = handles.begin(); handle != handles.end() && done; ++handle) {
      const absl::StatusOr<bool> is_done = TheRuntime().WaitAWhile(*handle, most);
      done = is_done.value_or(true);  // function() reports an unknown handle
    }
    return done ? function() : absl::OkStatus();
  });
  return done ? code : HVD_STILL_RUNNING;
}

// Returns the signatures; with a name, the only one under that name.
std::vector<SignaturePtr> Named(const std::vector<SignaturePtr>& signatures, const char* name) {
  if (name == nullptr) return signatures;
  // A copy: the prepared signature is shared by threads, and by operations that are still in flight
  // under other names.
  auto renamed = std::make_shared<TensorSignature>(*signatures.front());
  renamed->name = name;
  return {std::move(renamed)};
}

void FromResult(const TensorResult& from, hvd_tensor* to) {
  // Pointers into the result, which lives until the handle is released.
  to->data = from.data;
  to->shape = from.shape.data();
  to->ndim = static_cast<int32_t>(from.shape.size());
  to->received_splits = from.received_splits.data();
  to->received_splits_count = static_cast<int32_t>(from.received_splits.size());
  to->last_joined_rank = from.last_joined_rank;
  to->world_is_changing = from.world_is_changing ? 1 : 0;
}

}  // namespace

int32_t hvd_abi_version(void) { return HVD_ABI_VERSION; }
const char* hvd_version(void) { return hvd::kVersion; }
const char* hvd_last_error(void) { return runtime::api::LastError(); }

int32_t hvd_arm_failpoints(void) {
  hvd::failpoint::ArmByVariable("worker");
  return hvd::failpoint::armed.load() ? 1 : 0;
}

int32_t hvd_pass_failpoint(const char* name) {
  return Guarded([name]() -> absl::Status {
    const size_t point = hvd::failpoint::Find(name);
    if (point < hvd::failpoint::kCount) return hvd::failpoint::Act(point);
    return absl::NotFoundError(absl::StrCat("there is no failpoint ", name));
  });
}

int32_t hvd_init(void) {
  return Guarded([] { return TheRuntime().Init(); });
}

int32_t hvd_shutdown(void) {
  return Guarded([] { return TheRuntime().Shutdown(); });
}

int32_t hvd_join_world(void) {
  return Guarded([] { return TheRuntime().JoinWorld(); });
}

void hvd_set_join(void (*join)()) { TheRuntime().SetJoin(join); }

int32_t hvd_reset(void) {
  return Guarded([] { return TheRuntime().Reset(); });
}

void hvd_set_commit(int64_t number) {
  TheRuntime().SetCommit(static_cast<uint64_t>(std::max<int64_t>(number, 0)));
}

// Without a world yet, nobody knows whose state is the newest: the safe answer is yes.
int32_t hvd_must_sync_state(void) {
  return Query([](ActiveWorld& active) { return active.world().sync_state ? 1 : 0; }, 1);
}

int32_t hvd_on_corruption(void) {
  return Query(
      [](ActiveWorld& active) { return static_cast<int32_t>(active.world().on_corruption); }, 0);
}

int32_t hvd_is_deferred(void) { return TheRuntime().is_deferred() ? 1 : 0; }

int32_t hvd_is_initialized(void) {
  return QueryPlace([](const Placement&) { return 1; }, 0);
}

int32_t hvd_rank(void) {
  return QueryPlace([](const Placement& place) { return place.rank; }, -1);
}

int32_t hvd_size(void) {
  return QueryPlace([](const Placement& place) { return place.size; }, -1);
}

int32_t hvd_local_rank(void) {
  return QueryPlace([](const Placement& place) { return place.local_rank; }, -1);
}

int32_t hvd_local_size(void) {
  return QueryPlace([](const Placement& place) { return place.local_size; }, -1);
}

int32_t hvd_cross_rank(void) {
  return QueryPlace([](const Placement& place) { return place.cross_rank; }, -1);
}

int32_t hvd_cross_size(void) {
  return QueryPlace([](const Placement& place) { return place.cross_size; }, -1);
}

const char* hvd_job_id(void) {
  // The caller gets a pointer, which must stay valid when another thread calls this.
  thread_local std::string id;
  id = TheRuntime().job_id();
  return id.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer): valid until the thread's
                      // next call
}

int64_t hvd_epoch(void) {
  const std::shared_ptr<ActiveWorld> active = TheRuntime().active();
  return active == nullptr ? 0 : static_cast<int64_t>(active->world().epoch.value());
}

// A process that is alone, or in no world yet, has only its own host to compare.
int32_t hvd_is_homogeneous(void) {
  return Query([](ActiveWorld& active) { return active.world().IsHomogeneous() ? 1 : 0; }, 1);
}

int32_t hvd_world_is_changing(void) {
  return Query([](ActiveWorld& active) { return active.changing() ? 1 : 0; }, 0);
}

int32_t hvd_add_process_set(const int32_t* ranks, int32_t count, int32_t* id) {
  return WithWorld([&](ActiveWorld& world) {
    return world.process_sets().Add(std::vector<int>(ranks, ranks + std::max(count, 0)), id);
  });
}

int32_t hvd_remove_process_set(int32_t id) {
  return WithWorld([&](ActiveWorld& world) { return world.process_sets().Remove(id); });
}

int32_t hvd_member(int32_t rank, uint64_t* worker, uint64_t* incarnation) {
  return WithWorld([&](ActiveWorld& active) -> absl::Status {
    const runtime::session::WorkerWorld& world = active.world();
    if (rank < 0 || rank >= world.size()) {
      return absl::NotFoundError(absl::StrCat("there is no rank ", rank));
    }
    // In a large world this may ask the daemon, so it is not part of joining.
    ASSIGN_OR_RETURN(const std::vector<runtime::session::Peer> peers, world.members->Get());
    *worker = peers[rank].worker.value();
    *incarnation = peers[rank].incarnation.value();
    return absl::OkStatus();
  });
}

int32_t hvd_submit(const hvd_request* requests, int32_t count, int32_t process_set, int32_t waits,
                   int64_t* handle) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<TensorRequest> group, ToRequests(requests, count));
    ASSIGN_OR_RETURN(*handle, TheRuntime().Submit(std::move(group), process_set, waits != 0));
    return absl::OkStatus();
  });
}

int32_t hvd_submit_then(const hvd_request* requests, int32_t count, int32_t process_set,
                        hvd_done done, void* context) {
  return Guarded([&]() -> absl::Status {
    // Found here, on the caller's thread: the callback thread could tell nobody.
    if (done == nullptr) return absl::InvalidArgumentError("a callback is needed");
    ASSIGN_OR_RETURN(std::vector<TensorRequest> group, ToRequests(requests, count));
    return TheRuntime().SubmitThen(std::move(group), process_set,
                                   [=](Runtime::Handle handle, const absl::Status& status) {
                                     done(context, handle, runtime::api::ToCode(status));
                                   });
  });
}

struct hvd_prepared {
  std::vector<SignaturePtr> signatures;
};

int32_t hvd_prepare(const hvd_request* requests, int32_t count, hvd_prepared** prepared) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<TensorRequest> group, ToRequests(requests, count));
    auto made = std::make_unique<hvd_prepared>();
    std::vector<TensorMemory> none;
    runtime::engine::SplitRequests(std::move(group), made->signatures, none);
    *prepared = made.release();
    return absl::OkStatus();
  });
}

void hvd_forget(hvd_prepared* prepared) { delete prepared; }

int64_t hvd_start(const hvd_prepared* prepared, const char* name, const void* input, void* output,
                  int32_t process_set) {
  return HandleOf([&] {
    return TheRuntime().Submit(Named(prepared->signatures, name), {{input, output}}, process_set);
  });
}

int64_t hvd_start_group(const hvd_prepared* prepared, const void* const* inputs,
                        void* const* outputs, int32_t process_set) {
  return HandleOf([&] {
    std::vector<TensorMemory> memory(prepared->signatures.size());
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = {inputs[i], outputs[i]};
    return TheRuntime().Submit(prepared->signatures, std::move(memory), process_set);
  });
}

int64_t hvd_run(const hvd_prepared* prepared, const char* name, const void* input, void* output,
                int32_t process_set) {
  Runtime::Pending pending;
  const int32_t refused = Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(pending, TheRuntime().Start(Named(prepared->signatures, name),
                                                 {{input, output}}, process_set,
                                                 /*waits=*/true));
    return absl::OkStatus();
  });
  // Negative: the operation never began, and its memory is the caller's again. A positive code is
  // the end of an operation that did.
  if (refused != HVD_OK) return -refused;
  // The usual case: the operation ends within a second, and no handle is ever registered.
  if (pending.WaitAWhile()) {
    return Guarded([&] {
      if (pending.operation->status.ok()) TheRuntime().NoteWork();
      return pending.operation->status;
    });
  }
  // It goes on, and so does its use of the caller's memory: only with the handle can the caller
  // wait again.
  return TheRuntime().Keep(std::move(pending));
}

int32_t hvd_poll(int64_t handle, int32_t* done) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const bool is_done, TheRuntime().Poll(handle));
    *done = is_done ? 1 : 0;
    return absl::OkStatus();
  });
}

int32_t hvd_wait(int64_t handle, double seconds) {
  return AWhile({&handle, 1}, absl::Seconds(seconds), [&] { return TheRuntime().Wait(handle); });
}

int32_t hvd_result(int64_t handle, int32_t index, hvd_tensor* result) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<TensorResult>* results, TheRuntime().Results(handle));
    if (index < 0 || index >= static_cast<int32_t>(results->size())) {
      return absl::NotFoundError(absl::StrCat("handle ", handle, " has no tensor ", index));
    }
    FromResult((*results)[index], result);
    return absl::OkStatus();
  });
}

// Waits for the operation, too: the memory that it still uses must not be given back.
int32_t hvd_release(int64_t handle) {
  return Guarded([&] {
    TheRuntime().Release(handle);
    return absl::OkStatus();
  });
}

int32_t hvd_finish(const int64_t* handles, int32_t count) {
  const auto all = absl::MakeConstSpan(handles, count);
  return AWhile(all, absl::InfiniteDuration(), [&] { return TheRuntime().Finish(all); });
}

int32_t hvd_start_timeline(const char* path, int32_t mark_cycles) {
  return Guarded(
      [&] { return TheRuntime().StartTimeline(path == nullptr ? "" : path, mark_cycles != 0); });
}

int32_t hvd_stop_timeline(void) {
  return Guarded([] { return TheRuntime().StopTimeline(); });
}

int32_t hvd_stack_request(int32_t* fd, int32_t* signal) {
  return Guarded([&]() -> absl::Status {
    const auto request = TheRuntime().stack_request();
    if (!request.has_value())
      return absl::NotFoundError("no agent has asked for this process's stacks");
    *fd = request->fd;
    *signal = request->signal;
    return absl::OkStatus();
  });
}

int32_t hvd_report_failure(const char* message, int32_t caused_by_peer, int32_t ends_job) {
  return Guarded([&] {
    TheRuntime().ReportFailure(message == nullptr ? "" : message, caused_by_peer != 0,
                               ends_job != 0);
    return absl::OkStatus();
  });
}

void hvd_begin_training(void) { TheRuntime().BeginTraining(); }

void hvd_forget_work(void) { TheRuntime().ForgetWork(); }

void hvd_count_step(void) { TheRuntime().CountStep(); }

void hvd_note_error(const char* message, int32_t caused_by_peer) {
  TheRuntime().NoteError(message == nullptr ? "" : message, caused_by_peer != 0);
}

int32_t hvd_check_world(void) {
  return Guarded([] { return TheRuntime().CheckWorld(); });
}

int32_t hvd_confirm_world(void) {
  return Guarded([] { return TheRuntime().ConfirmWorld(); });
}

int32_t hvd_disk_is_full(void) { return TheRuntime().DiskIsFull() ? 1 : 0; }

void hvd_note_checkpoints(int64_t commit, double age_seconds, const char* place,
                          const char* failure) {
  const absl::Duration age =
      age_seconds < 0 ? absl::InfiniteDuration() : absl::Seconds(age_seconds);
  TheRuntime().NoteCheckpoints({static_cast<uint64_t>(commit), age, place == nullptr ? "" : place,
                                failure == nullptr ? "" : failure});
}

int32_t hvd_built(const char* what) {
  const absl::string_view name = what == nullptr ? "" : what;
  if (name == "nccl") return hvd::collectives::nccl::InstalledNcclVersion();
  if (name == "cuda") return hvd::collectives::nccl::HasCudaDriver() ? 1 : 0;
  return name == "gloo" ? 1 : 0;
}

int32_t hvd_takes_device(int32_t device) { return TheRuntime().TakesDevice(device) ? 1 : 0; }
