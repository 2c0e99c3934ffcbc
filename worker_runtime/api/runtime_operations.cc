// Runtime's operations: submitted to a world's engine or a process set's, and known by numbers.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/tls_session.h"
#include "base/settings/runtime_settings.h"
#include "base/status_macros.h"
#include "rehearsal/worker/faulty_backend.h"
#include "worker_runtime/api/backends.h"
#include "worker_runtime/api/runtime.h"
#include "worker_runtime/session/bootstrap.h"

namespace hvd::worker_runtime::api {
namespace {

absl::Status NoSuchHandle(Runtime::Handle handle) {
  return absl::NotFoundError(
      absl::StrCat("Handle ", handle, " was not created or has been cleared."));
}

}  // namespace

absl::StatusOr<std::shared_ptr<engine::Engine>> Runtime::PrepareEngine(
    int32_t process_set, std::vector<negotiation::SignaturePtr>& signatures) {
  if (rehearsal::page::FaultPage* const faults = faults_.load(std::memory_order_relaxed)) {
    rehearsal::worker::DelayIfOrdered(*faults, rehearsal::page::FaultPage::Order::kSlowRank);
  }
  if (group::ProcessGroups::IsGroup(process_set)) {
    ASSIGN_OR_RETURN(const std::shared_ptr<group::ProcessGroup> group, groups_.Find(process_set));
    return group->engine();
  }
  std::shared_ptr<ActiveWorld> world = active();
  if (world == nullptr) {
    RETURN_IF_ERROR(JoinForOperation());
    world = active();
    if (world == nullptr) return NotInitializedError();  // another thread has just shut down
  }
  if (process_set == 0) return world->engine();
  return world->process_sets().Prepare(process_set, signatures);
}

absl::Status Runtime::JoinForOperation() {
  const auto join = join_.load();
  if (join == nullptr || !is_deferred()) return JoinWorld();
  join();
  // A join from here would leave out what all members do first, and both would wait for ever.
  absl::MutexLock lock(&mutex_);
  if (active_ != nullptr) return absl::OkStatus();
  if (!last_join_.ok()) return last_join_;
  return absl::FailedPreconditionError("this process has joined no world, as its program refused");
}

absl::StatusOr<Runtime::Pending> Runtime::Start(std::vector<negotiation::SignaturePtr> signatures,
                                                std::vector<engine::TensorMemory> memory,
                                                int32_t process_set, bool waits) {
  ASSIGN_OR_RETURN(std::shared_ptr<engine::Engine> engine, PrepareEngine(process_set, signatures));
  ASSIGN_OR_RETURN(engine::Engine::Handle operation,
                   engine->Submit(std::move(signatures), std::move(memory), waits));
  return Pending{std::move(engine), std::move(operation)};
}

namespace {

// Adds to `options` what the process's job, if it is in one, has for connections of its workers.
absl::Status TakeFromJob(const settings::RuntimeEnv& env, group::ProcessGroupOptions& options) {
  if (env.agent_socket.empty()) {
    if (!env.encrypt_data) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "HOROVOD_ENCRYPT_DATA=1 is set, but this process is in no job, which would have the "
        "certificates: start the script by horovodrun --encrypt-data");
  }
  ASSIGN_OR_RETURN(const pb::WorkerBootstrap job,
                   session::FetchCredentials(env.agent_socket, WorkerId(env.worker_id),
                                             env.worker_word, env.agent_timeout));
  const pb::Credentials& credentials = job.credentials();
  options.job_secret = credentials.token();
  if (!job.encrypt_data()) {
    if (!env.encrypt_data) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "HOROVOD_ENCRYPT_DATA=1 is set for this worker, but its job does not encrypt: give "
        "--encrypt-data to horovodrun or horovod-rendezvousd");
  }
  ASSIGN_OR_RETURN(options.tls,
                   net::TlsContext::Create({credentials.ca_certificate(), credentials.certificate(),
                                            credentials.private_key()}));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int32_t> Runtime::OpenGroup(const group::ProcessGroupOptions& options,
                                           group::Store& store) {
  ASSIGN_OR_RETURN(const settings::RuntimeEnv env,
                   settings::ParseRuntimeEnv(settings::ReadRuntimeVariables()));
  group::ProcessGroupOptions complete = options;
  RETURN_IF_ERROR(TakeFromJob(env, complete));
  const std::unique_ptr<collectives::Backend> backend = MakeGroupBackend(env);
  ASSIGN_OR_RETURN(
      std::unique_ptr<group::ProcessGroup> group,
      group::ProcessGroup::Connect(complete, env, *backend, HostIdentityOf(env), store));
  return groups_.Add(std::move(group));
}

absl::StatusOr<std::shared_ptr<group::ProcessGroup>> Runtime::FindMessaging(int32_t id) const {
  ASSIGN_OR_RETURN(std::shared_ptr<group::ProcessGroup> group, groups_.Find(id));
  if (group->messenger() != nullptr) return group;
  return absl::InvalidArgumentError("a group of one rank has nobody to send to or receive from");
}

absl::Status Runtime::AbortGroup(int32_t id, absl::string_view reason) {
  ASSIGN_OR_RETURN(const std::shared_ptr<group::ProcessGroup> group, groups_.Find(id));
  group->Abort(absl::AbortedError(reason));
  return absl::OkStatus();
}

TaskThread* Runtime::callbacks() const {
  absl::MutexLock lock(&mutex_);
  const bool is_there = callbacks_ != nullptr && callbacks_->BelongsToThisProcess();
  return is_there ? callbacks_.get() : nullptr;
}

TaskThread& Runtime::StartCallbacks() {
  absl::MutexLock lock(&mutex_);
  // In a forked child the inherited object has no thread. It is leaked: its destructor would join.
  if (callbacks_ != nullptr && !callbacks_->BelongsToThisProcess()) (void)callbacks_.release();
  if (callbacks_ == nullptr) callbacks_ = std::make_unique<TaskThread>();
  return *callbacks_;
}

absl::Status Runtime::SubmitThen(std::vector<engine::TensorRequest> requests, int32_t process_set,
                                 Done done) {
  std::vector<negotiation::SignaturePtr> signatures;
  std::vector<engine::TensorMemory> memory;
  engine::SplitRequests(std::move(requests), signatures, memory);
  ASSIGN_OR_RETURN(std::shared_ptr<engine::Engine> engine, PrepareEngine(process_set, signatures));
  auto call = [this, done = std::move(done)](const Pending& pending) {
    const absl::Status& status = pending.operation->status;
    if (status.ok()) NoteWork();
    done(Keep(pending), status);
  };
  // `then` runs on the engine's thread and moves its reference to the engine to the callback
  // thread. If the engine's thread released the last reference, the destructor would join the
  // thread that it runs on.
  auto then = [engine, call,
               &callbacks = StartCallbacks()](engine::Engine::Handle operation) mutable {
    callbacks.Add([call = std::move(call),
                   pending = Pending{std::move(engine), std::move(operation)}] { call(pending); });
  };
  return engine->SubmitThen(std::move(signatures), std::move(memory), std::move(then));
}

absl::StatusOr<Runtime::Handle> Runtime::Submit(std::vector<negotiation::SignaturePtr> signatures,
                                                std::vector<engine::TensorMemory> memory,
                                                int32_t process_set, bool waits) {
  ASSIGN_OR_RETURN(Pending pending,
                   Start(std::move(signatures), std::move(memory), process_set, waits));
  // The result is ignored: the caller waits again with the handle, and gets what has happened by
  // then.
  if (waits) pending.WaitAWhile();
  return Keep(std::move(pending));
}

Runtime::Handle Runtime::Keep(Pending pending) {
  absl::MutexLock lock(&mutex_);
  pending_.emplace(next_handle_, std::move(pending));
  return next_handle_++;
}

absl::StatusOr<Runtime::Handle> Runtime::Submit(std::vector<engine::TensorRequest> requests,
                                                int32_t process_set, bool waits) {
  std::vector<negotiation::SignaturePtr> signatures;
  std::vector<engine::TensorMemory> memory;
  engine::SplitRequests(std::move(requests), signatures, memory);
  return Submit(std::move(signatures), std::move(memory), process_set, waits);
}

// Returns a copy, whose references keep the operation and its engine alive while a thread waits,
// even if another thread releases the handle meanwhile.
absl::StatusOr<Runtime::Pending> Runtime::Find(Handle handle) const {
  absl::MutexLock lock(&mutex_);
  const auto found = pending_.find(handle);
  if (found == pending_.end()) return NoSuchHandle(handle);
  return found->second;
}

absl::StatusOr<Runtime::Pending> Runtime::Take(Handle handle) {
  absl::MutexLock lock(&mutex_);
  const auto found = pending_.find(handle);
  if (found == pending_.end()) return NoSuchHandle(handle);
  Pending pending = std::move(found->second);
  pending_.erase(found);
  return pending;
}

absl::StatusOr<bool> Runtime::Poll(Handle handle) {
  ASSIGN_OR_RETURN(const Pending pending, Find(handle));
  return pending.operation->done.done();
}

absl::Status Runtime::Wait(Handle handle) {
  ASSIGN_OR_RETURN(const Pending pending, Find(handle));
  RETURN_IF_ERROR(pending.Wait());
  NoteWork();
  return absl::OkStatus();
}

absl::StatusOr<bool> Runtime::WaitAWhile(Handle handle, absl::Duration most) {
  ASSIGN_OR_RETURN(const Pending pending, Find(handle));
  return pending.WaitAWhile(most);
}

absl::StatusOr<const std::vector<engine::TensorResult>*> Runtime::Results(Handle handle) {
  ASSIGN_OR_RETURN(const Pending pending, Find(handle));
  return &pending.operation->results;
}

absl::Status Runtime::Finish(absl::Span<const Handle> handles) {
  // Goes on after an error: all handles must be released, and the memory of an operation in flight
  // must not be given back to the user.
  absl::Status status;
  for (Handle handle : handles) {
    const absl::StatusOr<Pending> pending = Take(handle);
    status.Update(pending.ok() ? pending->Wait() : pending.status());
  }
  if (status.ok() && !handles.empty()) NoteWork();
  return status;
}

}  // namespace hvd::worker_runtime::api
