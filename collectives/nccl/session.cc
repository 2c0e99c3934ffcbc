#include "collectives/nccl/session.h"

#include <algorithm>
#include <thread>  // NOLINT: the closer
#include <utility>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "base/status_macros.h"
#include "collectives/nccl/convert.h"

namespace hvd {
namespace {

// Polls that follow each other at once: about as long as the smallest operations take.
constexpr int kBusyPolls = 100;

absl::Duration PauseAfter(int polls) {
  return std::min(absl::Microseconds(50) * (polls / kBusyPolls), absl::Milliseconds(1));
}

}  // namespace

absl::StatusOr<std::shared_ptr<NcclSession>> NcclSession::Connect(
    const GpuLibraries& libraries, std::unique_ptr<DeviceStream> stream, const NcclPlace& place,
    const NcclBounds& limits, const WaitBounds& bounds) {
  std::shared_ptr<NcclSession> session(new NcclSession(libraries, std::move(stream), limits));
  RETURN_IF_ERROR(session->Initialize(place, bounds));
  return session;
}

absl::Status NcclSession::Initialize(const NcclPlace& place, const WaitBounds& bounds) {
  const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
  absl::Status status = Touch([&] {
    NcclConfig config;
    NcclComm* comm = nullptr;
    const NcclResult result =
        nccl_.comm_init_rank_config(&comm, place.size, place.id, place.rank, &config);
    absl::MutexLock lock(&mutex_);
    comm_ = comm;
    return Check(result, "making a communicator");
  });
  if (status.ok()) status = AwaitSettled(deadline, bounds.cancellation);
  if (!status.ok()) return Fail(status);
  absl::MutexLock lock(&mutex_);
  return life_.Connected();
}

absl::Status NcclSession::Run(absl::Duration timeout, absl::FunctionRef<absl::Status()> enqueue,
                              absl::FunctionRef<absl::Status(const absl::Status&)> explain) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(life_.Begin());
  }
  deadline_ = Clock::Real().Now() + timeout;
  absl::Status status = enqueue();
  if (status.ok()) status = Synchronize();
  if (!status.ok()) return Fail(explain(status));
  absl::MutexLock lock(&mutex_);
  return life_.Succeed();
}

absl::Status NcclSession::Group(absl::FunctionRef<NcclResult(NcclComm*, CudaStream*)> body) {
  RETURN_IF_ERROR(Touch([&]() -> absl::Status {
    RETURN_IF_ERROR(Check(nccl_.group_start(), "starting a group"));
    const NcclResult enqueued = body(comm_, stream_->get());
    const NcclResult ended = nccl_.group_end();  // also after a failure: the state is the thread's
    RETURN_IF_ERROR(Check(enqueued, "enqueuing"));
    return Check(ended, "ending a group");
  }));
  // Until then nothing may be on the stream yet.
  return AwaitSettled(deadline_, nullptr);
}

absl::Status NcclSession::OnStream(absl::FunctionRef<absl::Status(DeviceStream&)> body) {
  return Touch([&] { return body(*stream_); });
}

absl::Status NcclSession::Synchronize() {
  RETURN_IF_ERROR(Touch([&] { return stream_->Mark(); }));
  return Poll(deadline_, nullptr, [&]() -> absl::StatusOr<bool> {
    bool done = false;
    RETURN_IF_ERROR(Touch([&]() -> absl::Status {
      ASSIGN_OR_RETURN(done, stream_->Done());
      return absl::OkStatus();
    }));
    if (done) return true;
    RETURN_IF_ERROR(Settled().status());  // errors show here, while the stream hangs
    return false;
  });
}

absl::Status NcclSession::Call(absl::string_view what,
                               absl::FunctionRef<NcclResult(NcclComm*)> call) {
  return Touch([&] { return Check(call(comm_), what); });
}

absl::Status NcclSession::Touch(absl::FunctionRef<absl::Status()> use) {
  {
    absl::MutexLock lock(&mutex_);
    if (!life_.EnterCall()) return life_.status();
  }
  absl::Status status;
  {
    const DeviceStream::ScopedDevice device(*stream_);
    status = use();
  }
  absl::MutexLock lock(&mutex_);
  life_.LeaveCall();
  return status;
}

absl::Status NcclSession::Check(NcclResult result, absl::string_view what) const {
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) return absl::OkStatus();
  const char* detail = nccl_.get_last_error(nullptr);  // it takes no notice of its argument
  return FromNccl(result, what, nccl_.get_error_string(result), detail == nullptr ? "" : detail);
}

absl::StatusOr<bool> NcclSession::Settled() {
  NcclResult state = NcclResult::kSuccess;
  RETURN_IF_ERROR(Touch([&]() -> absl::Status {
    RETURN_IF_ERROR(Check(nccl_.comm_get_async_error(comm_, &state), "asking for errors"));
    return Check(state, "NCCL");
  }));
  return state != NcclResult::kInProgress;
}

absl::Status NcclSession::AwaitSettled(absl::Time deadline, const Cancellation* cancellation) {
  return Poll(deadline, cancellation, [this] { return Settled(); });
}

absl::Status NcclSession::Poll(absl::Time deadline, const Cancellation* cancellation,
                               absl::FunctionRef<absl::StatusOr<bool>()> done) {
  for (int polls = 0;; ++polls) {
    ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return absl::OkStatus();
    if (cancellation != nullptr) RETURN_IF_ERROR(cancellation->status());
    const absl::Time now = Clock::Real().Now();
    if (now >= deadline) return absl::DeadlineExceededError("not all ranks came in time");
    if (polls >= kBusyPolls) Pause(PauseAfter(polls));
  }
}

void NcclSession::Pause(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  // Whoever leaves in order has a status as well, and still has to wait.
  const bool was_ok = life_.status().ok();
  const auto broken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return was_ok && !life_.status().ok();
  };
  Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&broken), Clock::Real().Now() + time);
}

void NcclSession::Break(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!life_.Break(why)) return;
  }
  StartCloser(/*gently=*/false);
}

absl::Status NcclSession::Fail(const absl::Status& why) {
  Break(why);
  AwaitClosed();  // the device may still write to the caller's buffers until then
  absl::MutexLock lock(&mutex_);
  return life_.status();
}

void NcclSession::Close() {
  bool in_order;
  {
    absl::MutexLock lock(&mutex_);
    in_order = life_.Leave();
  }
  if (in_order) StartCloser(/*gently=*/true);
  AwaitClosed();
}

void NcclSession::StartCloser(bool gently) {
  StartQuietThread([self = shared_from_this(), gently] { self->End(gently); }).detach();
}

void NcclSession::End(bool gently) {
  AwaitNoCall();  // or the call is stuck, and returns when the communicator is aborted
  NcclComm* comm;
  {
    absl::MutexLock lock(&mutex_);
    comm = comm_;
  }
  {
    const DeviceStream::ScopedDevice device(*stream_);
    if (comm != nullptr && !(gently && EndGently(comm))) nccl_.comm_abort(comm);
  }
  // If a thread is stuck nevertheless, it keeps the stream.
  if (AwaitNoCall()) {
    stream_.reset();
  } else {
    stream_.release();  // NOLINT(bugprone-unused-return-value): nobody can ever free it
  }
  absl::MutexLock lock(&mutex_);
  life_.Closed();
}

// What peers still want of this rank is in NCCL's hands: finalizing waits for that.
bool NcclSession::EndGently(NcclComm* comm) {
  const absl::Time deadline = Clock::Real().Now() + limits_.finalize;
  if (!Check(nccl_.comm_finalize(comm), "finalizing").ok()) return false;
  for (;;) {
    NcclResult state = NcclResult::kSuccess;
    if (nccl_.comm_get_async_error(comm, &state) != NcclResult::kSuccess) return false;
    if (state == NcclResult::kSuccess) return nccl_.comm_destroy(comm) == NcclResult::kSuccess;
    if (state != NcclResult::kInProgress || Clock::Real().Now() >= deadline) return false;
    Pause(absl::Milliseconds(1));
  }
}

void NcclSession::AwaitClosed() {
  absl::MutexLock lock(&mutex_);
  const auto closed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return life_.state() == NcclLife::State::kClosed;
  };
  Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&closed),
                                  Clock::Real().Now() + limits_.close);
}

bool NcclSession::AwaitNoCall() {
  absl::MutexLock lock(&mutex_);
  const auto no_call = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !life_.in_call(); };
  return Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&no_call),
                                         Clock::Real().Now() + limits_.stuck_call);
}

}  // namespace hvd
