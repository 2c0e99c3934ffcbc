#include "collectives/nccl/guarded_comm.h"

#include <algorithm>
#include <thread>  // NOLINT: the closer
#include <utility>

#include "base/clock.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "collectives/nccl/convert.h"

namespace hvd::collectives::nccl {
namespace {

// The number of polls without a pause in between: they take about as long as the smallest
// operations.
constexpr int kBusyPolls = 100;

absl::Duration PauseAfter(int polls) {
  return std::min(absl::Microseconds(50) * (polls / kBusyPolls), absl::Milliseconds(1));
}

}  // namespace

absl::StatusOr<std::shared_ptr<GuardedComm>> GuardedComm::Connect(
    const GpuLibraries& libraries, std::unique_ptr<DeviceStream> stream, const NcclPlace& place,
    const NcclBounds& limits, const WaitBounds& bounds) {
  std::shared_ptr<GuardedComm> comm(new GuardedComm(libraries, std::move(stream), limits));
  RETURN_IF_ERROR(comm->Initialize(place, bounds));
  return comm;
}

// The thread that makes the communicator, and later the watchdog, share the ownership of the
// communicator: they may outlive the caller's interest in it if NCCL never returns.
absl::Status GuardedComm::Initialize(const NcclPlace& place, const WaitBounds& bounds) {
  const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
  StartSignalFreeThread([self = shared_from_this(), place] {
    self->MakeCommunicator(place);
  }).detach();
  absl::Status status = Poll(deadline, bounds.cancellation, [this]() -> absl::StatusOr<bool> {
    absl::MutexLock lock(&mutex_);
    if (!made_.has_value()) return false;
    RETURN_IF_ERROR(*made_);
    return true;
  });
  if (status.ok()) status = AwaitSettled(deadline, bounds.cancellation);
  if (!status.ok()) return Fail(status);
  StartSignalFreeThread([self = shared_from_this()] { self->WatchCalls(); }).detach();
  absl::MutexLock lock(&mutex_);
  return state_.Connected();
}

// NCCL writes the new communicator to comm_ during the call, perhaps long before the call returns.
// So the closer can abort it meanwhile, which makes the call return. If the closer has finished
// before NCCL wrote comm_, nobody else can free the communicator, so this thread aborts it.
void GuardedComm::MakeCommunicator(const NcclPlace& place) {
  static_assert(sizeof(comm_) == sizeof(NcclComm*) && decltype(comm_)::is_always_lock_free);
  const absl::Status made = Touch([&] {
    NcclConfig config;
    return Check(nccl_.comm_init_rank_config(reinterpret_cast<NcclComm**>(&comm_), place.size,
                                             place.id, place.rank, &config),
                 "making a communicator");
  });
  bool nobody_else_ends_it;
  {
    absl::MutexLock lock(&mutex_);
    made_ = made;
    nobody_else_ends_it = state_.state() == CommState::State::kClosed;
  }
  if (!nobody_else_ends_it) return;
  if (NcclComm* const late = comm_.exchange(nullptr)) nccl_.comm_abort(late);
}

void GuardedComm::WatchCalls() {
  if (!AwaitStuckCall()) return;
  Break(absl::DeadlineExceededError("a call of NCCL has not returned in time"));
}

bool GuardedComm::AwaitStuckCall() {
  absl::MutexLock lock(&mutex_);
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_.state() == CommState::State::kClosing ||
           state_.state() == CommState::State::kClosed;
  };
  const auto is_in_call = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_.state() == CommState::State::kBusy && state_.in_call();
  };
  while (!is_over()) {
    const absl::Time by = return_by_;
    const bool is_late = Clock::Real().Now() >= by;
    if (is_late && is_in_call()) return true;
    // A new operation usually moves return_by_ to a later time. This thread notices that only when
    // the earlier time has passed, so that operations need not wake it. It wakes before that only
    // if the communicator ends or return_by_ becomes earlier. A late operation may be between two
    // calls, reducing on the host for example; then its next call is watched, which may get stuck.
    const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return is_over() || (is_late ? return_by_ != by || is_in_call() : return_by_ < by);
    };
    Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&has_news),
                                    is_late ? absl::InfiniteFuture() : by);
  }
  return false;
}

absl::Status GuardedComm::Run(absl::Duration timeout, absl::FunctionRef<absl::Status()> enqueue,
                              absl::FunctionRef<absl::Status(const absl::Status&)> explain) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(state_.Begin());
    deadline_ = Clock::Real().Now() + timeout;
    return_by_ = deadline_ + limits_.stuck_call;
  }
  // Without the lock: a call may block until another thread breaks the communicator.
  absl::Status status = enqueue();
  if (status.ok()) status = Synchronize();
  if (!status.ok()) return Fail(explain(status));
  absl::MutexLock lock(&mutex_);
  return state_.Succeed();
}

absl::Status GuardedComm::Group(absl::FunctionRef<NcclResult(NcclComm*, CudaStream*)> body) {
  RETURN_IF_ERROR(Touch([&]() -> absl::Status {
    RETURN_IF_ERROR(Check(nccl_.group_start(), "starting a group"));
    const NcclResult enqueued = body(comm(), stream_->get());
    // The group must be ended even after a failure, since its state belongs to this thread.
    const NcclResult ended = nccl_.group_end();
    RETURN_IF_ERROR(Check(enqueued, "enqueuing"));
    return Check(ended, "ending a group");
  }));
  // A non-blocking communicator may put the work onto the stream after group_end() has returned.
  // Until it is settled, an event that is recorded on the stream could come before that work.
  return AwaitSettled(deadline_, nullptr);
}

absl::Status GuardedComm::OnStream(absl::FunctionRef<absl::Status(DeviceStream&)> body) {
  return Touch([&] { return body(*stream_); });
}

absl::Status GuardedComm::Synchronize() {
  RETURN_IF_ERROR(Touch([&] { return stream_->Mark(); }));
  return Poll(deadline_, nullptr, [&]() -> absl::StatusOr<bool> {
    bool done = false;
    RETURN_IF_ERROR(Touch([&]() -> absl::Status {
      ASSIGN_OR_RETURN(done, stream_->Done());
      return absl::OkStatus();
    }));
    if (done) return true;
    // NCCL reports asynchronous errors only here; after one the stream would hang.
    RETURN_IF_ERROR(Settled().status());
    return false;
  });
}

absl::Status GuardedComm::Call(absl::string_view what,
                               absl::FunctionRef<NcclResult(NcclComm*)> call) {
  return Touch([&] { return Check(call(comm()), what); });
}

absl::Status GuardedComm::Touch(absl::FunctionRef<absl::Status()> use) {
  {
    absl::MutexLock lock(&mutex_);
    // A communicator that is closing has a status that is not OK, so this never looks like success.
    if (!state_.EnterCall()) return state_.status();
  }
  absl::Status status;
  {
    const DeviceStream::ScopedDevice device(*stream_);
    status = use();
  }
  absl::MutexLock lock(&mutex_);
  state_.LeaveCall();
  return status;
}

absl::Status GuardedComm::Check(NcclResult result, absl::string_view what) const {
  if (!IsError(result)) return absl::OkStatus();
  const char* detail = nccl_.get_last_error(nullptr);  // NCCL ignores the argument
  return FromNccl(result, what, nccl_.get_error_string(result), detail == nullptr ? "" : detail);
}

absl::StatusOr<bool> GuardedComm::Settled() {
  NcclResult state = NcclResult::kSuccess;
  RETURN_IF_ERROR(Touch([&]() -> absl::Status {
    RETURN_IF_ERROR(Check(nccl_.comm_get_async_error(comm(), &state), "asking for errors"));
    return Check(state, "NCCL");
  }));
  return state != NcclResult::kInProgress;
}

absl::Status GuardedComm::AwaitSettled(absl::Time deadline, const Cancellation* cancellation) {
  return Poll(deadline, cancellation, [this] { return Settled(); });
}

absl::Status GuardedComm::Poll(absl::Time deadline, const Cancellation* cancellation,
                               absl::FunctionRef<absl::StatusOr<bool>()> done) {
  for (int polls = 0;; ++polls) {
    ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return absl::OkStatus();
    if (cancellation != nullptr) RETURN_IF_ERROR(cancellation->status());
    const absl::Time now = Clock::Real().Now();
    if (now >= deadline) return absl::DeadlineExceededError("not all ranks came in time");
    // The pauses grow with the age of the operation: a long one loses little by a late look, and
    // this thread leaves the core to the framework.
    if (polls >= kBusyPolls) Pause(PauseAfter(polls));
  }
}

void GuardedComm::Pause(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  // Only a change of the status ends the pause early. A communicator that is being closed cleanly
  // has an error status from the start, and EndGently must pause all the same.
  const bool was_ok = state_.status().ok();
  const auto broken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return was_ok && !state_.status().ok();
  };
  Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&broken), Clock::Real().Now() + time);
}

void GuardedComm::Break(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!state_.Break(why)) return;
  }
  StartCloser(/*gently=*/false);
}

absl::Status GuardedComm::Fail(const absl::Status& why) {
  Break(why);
  // Until the communicator is closed, the device may still access the caller's buffers.
  AwaitClosed();
  absl::MutexLock lock(&mutex_);
  return state_.status();
}

void GuardedComm::Close() {
  bool in_order;
  {
    absl::MutexLock lock(&mutex_);
    in_order = state_.Leave();
  }
  // After an error a closer runs already. It is awaited all the same, so that the device's memory
  // is usually free when the next world connects.
  if (in_order) StartCloser(/*gently=*/true);
  AwaitClosed();
}

void GuardedComm::StartCloser(bool gently) {
  StartSignalFreeThread([self = shared_from_this(), gently] { self->End(gently); }).detach();
}

// Order: wait until no call is in progress, since NCCL frees the communicator below; end the
// communicator; free the stream; publish kClosed. The first wait is bounded, because a stuck call
// returns only when the communicator is aborted during it.
void GuardedComm::End(bool gently) {
  AwaitNoCall();
  NcclComm* const made = comm_.exchange(nullptr);
  {
    const DeviceStream::ScopedDevice device(*stream_);
    if (made != nullptr && !(gently && EndGently(made))) nccl_.comm_abort(made);
  }
  // If a thread is still in a call, the stream must stay: it is freed with the communicator, which
  // that thread keeps alive.
  if (AwaitNoCall()) stream_.reset();
  NcclComm* late;
  {
    absl::MutexLock lock(&mutex_);
    state_.Closed();
    // NCCL may have written it after the exchange above. MakeCommunicator, which has found kClosing
    // then, leaves it here.
    late = comm_.exchange(nullptr);
  }
  if (late != nullptr) nccl_.comm_abort(late);
}

// Finalizing waits until NCCL has sent the data that peers still need from this rank. Returns false
// if that fails or takes too long; then the caller aborts the communicator.
bool GuardedComm::EndGently(NcclComm* comm) {
  const absl::Time deadline = Clock::Real().Now() + limits_.finalize;
  if (!Check(nccl_.comm_finalize(comm), "finalizing").ok()) return false;
  for (;;) {
    NcclResult state = NcclResult::kSuccess;
    if (nccl_.comm_get_async_error(comm, &state) != NcclResult::kSuccess) return false;
    // kInProgress counts as destroyed: NCCL frees the communicator, so an abort would use freed
    // memory.
    if (state == NcclResult::kSuccess) return !IsError(nccl_.comm_destroy(comm));
    if (state != NcclResult::kInProgress || Clock::Real().Now() >= deadline) return false;
    Pause(absl::Milliseconds(1));
  }
}

void GuardedComm::AwaitClosed() {
  absl::MutexLock lock(&mutex_);
  const auto closed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_.state() == CommState::State::kClosed;
  };
  Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&closed),
                                  Clock::Real().Now() + limits_.close);
}

bool GuardedComm::AwaitNoCall() {
  absl::MutexLock lock(&mutex_);
  const auto no_call = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !state_.in_call(); };
  return Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&no_call),
                                         Clock::Real().Now() + limits_.stuck_call);
}

}  // namespace hvd::collectives::nccl
