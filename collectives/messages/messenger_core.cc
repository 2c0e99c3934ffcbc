#include "collectives/messages/messenger_core.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"

namespace hvd::collectives::messages {
namespace {

// The longest WaitAWhile. A signal that arrives just before the poll does not interrupt it,
// so this also bounds how late the caller's signal handlers run.
constexpr absl::Duration kAWhile = absl::Seconds(1);
constexpr absl::Duration kLookFor = absl::Microseconds(50);  // as ShmLinks
// How long the background thread waits for another wait to begin.
constexpr int kDozeMilliseconds = 1;
// After so many steps without a sleep the mover looks whether a peer has ended.
constexpr uint32_t kStepsPerReview = 1024;

void Clear(const Fd& event) {
  eventfd_t count;
  (void)eventfd_read(event.get(), &count);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MessengerCore>> MessengerCore::Start(
    std::unique_ptr<Endpoint> endpoint, std::unique_ptr<HostLines> host,
    std::unique_ptr<FarLines> far) {
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), rouse(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid() || !rouse.valid()) return absl::ErrnoToStatus(errno, "no eventfd");
  std::unique_ptr<MessengerCore> core(new MessengerCore(
      std::move(endpoint), std::move(host), std::move(far), std::move(wake), std::move(rouse)));
  core->thread_ = StartSignalFreeThread([core = core.get()] { core->RunInBackground(); });
  return core;
}

MessengerCore::MessengerCore(std::unique_ptr<Endpoint> endpoint, std::unique_ptr<HostLines> host,
                             std::unique_ptr<FarLines> far, Fd wake, Fd rouse)
    : wake_(std::move(wake)),
      rouse_(std::move(rouse)),
      endpoint_(std::move(endpoint)),
      host_(std::move(host)),
      far_(std::move(far)) {}

// The peers learn of the end before the transfers fail: from then on the memory of these is the
// caller's.
void MessengerCore::Leave() {
  absl::MutexLock lock(&mutex_);
  if (!endpoint_->status().ok()) return;
  for (int peer = 0; host_ != nullptr && peer < endpoint_->size(); ++peer) {
    if (host_->Contains(peer)) endpoint_->Write(peer);
  }
  if (host_ != nullptr) host_->SayGoodbye();
  if (far_ != nullptr) far_->SayLast(*endpoint_, PacketKind::kGoodbye);
  endpoint_->Break(absl::AbortedError("the messenger is closed"));
  Changed();
  CallBack();
}

MessengerCore::~MessengerCore() {
  Leave();
  mutex_.Lock();
  stops_ = true;
  (void)eventfd_write(rouse_.get(), 1);
  CallBack();
  mutex_.Unlock();
  if (thread_.joinable()) thread_.join();
  mutex_.Lock();
  CallBack();
  mutex_.Unlock();
}

// ---- Transfers.

template <typename Begin>
TransferPtr MessengerCore::StartTransfer(Begin begin) {
  entering_.fetch_add(1, std::memory_order_relaxed);
  mutex_.Lock();
  entering_.fetch_sub(1, std::memory_order_relaxed);
  TransferPtr transfer = begin(*endpoint_);
  Changed();
  CallBack();
  mutex_.Unlock();
  return transfer;
}

TransferPtr MessengerCore::Send(int peer, const Message& message, const void* data, size_t bytes,
                                std::function<void()> then) {
  return StartTransfer([&](Endpoint& endpoint) {
    return endpoint.Send(peer, message, data, bytes, std::move(then));
  });
}

TransferPtr MessengerCore::Receive(int source_or_any, const Message& message, void* data,
                                   size_t bytes, std::function<void()> then) {
  return StartTransfer([&](Endpoint& endpoint) {
    return endpoint.Receive(source_or_any, message, data, bytes, std::move(then));
  });
}

void MessengerCore::OnBroken(std::function<void(const absl::Status&)> listener) {
  absl::MutexLock lock(&mutex_);
  listener_ = std::move(listener);
  listener_is_due_ = !endpoint_->status().ok();
  CallBack();
}

bool MessengerCore::broken() const {
  absl::MutexLock lock(&mutex_);
  return !endpoint_->status().ok();
}

void MessengerCore::Abort(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  Break(why);
  CallBack();
}

// The peers learn of it first; see the destructor.
void MessengerCore::Break(const absl::Status& why) {
  if (!endpoint_->status().ok()) return;
  if (host_ != nullptr) host_->GiveUp(why);
  if (far_ != nullptr) far_->SayLast(*endpoint_, PacketKind::kGaveUp);
  endpoint_->Break(why);
  listener_is_due_ = listener_ != nullptr;
  Changed();
}

void MessengerCore::Changed() {
  const bool has_work = HasWork();
  if (has_work) has_work_.store(true, std::memory_order_relaxed);
  const bool concerns_mover =
      has_work || !endpoint_->status().ok() || (awaited_ != nullptr && awaited_->done());
  if (asleep_ && concerns_mover && !std::exchange(woken_, true)) {
    (void)eventfd_write(wake_.get(), 1);
  }
  WakeDone();
}

void MessengerCore::WakeDone() {
  for (Waiting* const waiting : followers_) {
    if (waiting->transfer->done()) waiting->follower.Wake();
  }
}

void MessengerCore::CallBack() {
  while (endpoint_->has_callbacks() || listener_is_due_) {
    const std::vector<std::function<void()>> callbacks = endpoint_->TakeCallbacks();
    const auto listener = std::exchange(listener_is_due_, false) ? listener_ : nullptr;
    const absl::Status status = endpoint_->status();
    mutex_.Unlock();
    for (const auto& callback : callbacks) callback();
    if (listener) listener(status);
    mutex_.Lock();
  }
}

// The mover has changed the endpoint.
void MessengerCore::Settle() {
  WakeDone();
  CallBack();
}

// ---- The mover.

// Whether there is something to do that no peer announces.
bool MessengerCore::HasWork() const {
  return endpoint_->has_pulls() || endpoint_->has_unreached() || endpoint_->has_writers();
}

bool MessengerCore::Step() {
  has_work_.store(false, std::memory_order_relaxed);
  if (!endpoint_->status().ok()) return false;
  const absl::StatusOr<bool> moved = MoveAll();
  if (!moved.ok()) Break(moved.status());
  Settle();
  return !moved.ok() || *moved;
}

absl::StatusOr<bool> MessengerCore::MoveAll() {
  bool moved = false;
  if (host_ != nullptr) {
    ASSIGN_OR_RETURN(moved, host_->Move(*endpoint_));
    if (++steps_ % kStepsPerReview == 0) {
      host_->StayAwake();
      RETURN_IF_ERROR(host_->Review(*endpoint_));
    }
  }
  if (far_ != nullptr) {
    ASSIGN_OR_RETURN(const bool far_moved, far_->Move(*endpoint_));
    moved = moved || far_moved;
    for (const int peer : endpoint_->TakeUnreached()) far_->Dial(peer);
  }
  if (!endpoint_->has_pulls()) return moved;
  RETURN_IF_ERROR(PullOne());
  return true;
}

// Copies without the lock. What was copied counts only if the peer was still there afterwards: one
// that has left, or given up, may have used the memory for something else.
absl::Status MessengerCore::PullOne() {
  const Endpoint::Pull pull = endpoint_->NextPull();
  mutex_.Unlock();
  const bool copied = pull.memory->Read(pull.address, pull.to, pull.bytes);
  mutex_.Lock();
  absl::Status reviewed;
  if (pull.last || !copied) {
    host_->StayAwake();
    if (!host_->IsThere(pull.peer)) reviewed = host_->Review(*endpoint_);
  }
  if (!reviewed.ok()) Break(reviewed);
  endpoint_->EndPull(copied);
  return absl::OkStatus();
}

// What a review ends is settled first, partly without the lock; what other threads have started
// since the last step is seen after that.
bool MessengerCore::PrepareSleep() {
  if (host_ != nullptr && endpoint_->status().ok()) {
    const absl::Status reviewed = host_->Review(*endpoint_);
    if (!reviewed.ok()) Break(reviewed);
    Settle();
  }
  if (!endpoint_->status().ok()) return false;
  if (has_work_.load(std::memory_order_relaxed)) return false;
  if (endpoint_->has_pulls() || endpoint_->has_unreached()) return false;
  if (far_ != nullptr && far_->CanMove()) return false;
  return host_ == nullptr || host_->PrepareSleep(*endpoint_);
}

// Returns false if a signal has ended the sleep, or the time. A background thread may have lost its
// place meanwhile.
bool MessengerCore::Sleep(absl::Duration timeout, Mover as) {
  pollfd polled[] = {{wake_.get(), POLLIN, 0},
                     {host_ != nullptr ? host_->wake_fd() : -1, POLLIN, 0},
                     {far_ != nullptr ? far_->wake_fd() : -1, POLLIN, 0},
                     {as == Mover::kBackground ? rouse_.get() : -1, POLLIN, 0}};
  asleep_ = true;
  mutex_.Unlock();
  const bool is_bounded = timeout != absl::InfiniteDuration();
  const timespec limit = is_bounded ? absl::ToTimespec(timeout) : timespec{};
  const int ready = ppoll(polled, 4, is_bounded ? &limit : nullptr, nullptr);
  mutex_.Lock();
  if (polled[3].revents != 0) Clear(rouse_);
  if (mover_ != as) return true;
  asleep_ = false;
  if (std::exchange(woken_, false)) Clear(wake_);
  if (host_ != nullptr) host_->StayAwake();
  return ready > 0;
}

// A mutex is not fair: its holder usually gets it again before those that wait for it.
void MessengerCore::LetOthersIn() {
  mutex_.Unlock();
  if (entering_.load(std::memory_order_relaxed) > 0) sched_yield();
  mutex_.Lock();
}

// ---- A waiting thread.

bool MessengerCore::WaitAWhile(const Transfer& transfer, absl::Duration most) {
  if (transfer.done()) return true;
  const absl::Time deadline = Clock::Real().Now() + std::min(most, kAWhile);
  entering_.fetch_add(1, std::memory_order_relaxed);
  mutex_.Lock();
  entering_.fetch_sub(1, std::memory_order_relaxed);
  for (bool goes_on = true; goes_on && !transfer.done();) {
    if (mover_ == Mover::kWaiter || (mover_ == Mover::kBackground && !asleep_)) {
      goes_on = Follow(transfer, deadline);
      continue;
    }
    if (mover_ == Mover::kBackground) {
      asleep_ = false;
      if (host_ != nullptr) host_->TakeOver();
      (void)eventfd_write(rouse_.get(), 1);
    }
    mover_ = Mover::kWaiter;
    awaited_ = &transfer;
    goes_on = MoveUntilDone(transfer, deadline);
    awaited_ = nullptr;
    mover_ = Mover::kNobody;
    ++waits_;
  }
  if (mover_ == Mover::kNobody) PassOn();
  mutex_.Unlock();
  return transfer.done();
}

// Returns false if the time is over, or a signal has come.
bool MessengerCore::MoveUntilDone(const Transfer& transfer, absl::Time deadline) {
  while (true) {
    const bool moved = Step();
    if (transfer.done()) return true;
    if (moved) {
      LetOthersIn();
      continue;
    }
    if (host_ != nullptr) host_->NoteWriters(*endpoint_);
    mutex_.Unlock();
    const bool found = Look(transfer);
    mutex_.Lock();
    if (found || !PrepareSleep() || transfer.done()) continue;
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left <= absl::ZeroDuration()) {
      if (host_ != nullptr) host_->TakeOver();
      return false;
    }
    if (!Sleep(left, Mover::kWaiter)) return false;
  }
}

// Usually the peer's answer is soon there.
bool MessengerCore::Look(const Transfer& transfer) {
  const auto ready = [&] {
    return transfer.done() || has_work_.load(std::memory_order_relaxed) ||
           (host_ != nullptr && host_->HasNews()) || (far_ != nullptr && far_->HasNews());
  };
  if (host_ != nullptr) return host_->Look(ready);
  const absl::Time give_up = Clock::Real().Now() + kLookFor;
  while (!ready()) {
    if (Clock::Real().Now() >= give_up) return false;
    sched_yield();
  }
  return true;
}

bool MessengerCore::Follow(const Transfer& transfer, absl::Time deadline) {
  Waiting waiting = {&transfer, {}};
  const auto place = followers_.insert(followers_.end(), &waiting);
  mutex_.Unlock();
  const bool woken = waiting.follower.Await(deadline - Clock::Real().Now());
  mutex_.Lock();
  followers_.erase(place);
  return woken;
}

// There is no mover now.
void MessengerCore::PassOn() {
  if (!followers_.empty()) {
    followers_.front()->follower.Wake();
  } else if (std::exchange(resting_, false)) {
    (void)eventfd_write(rouse_.get(), 1);
  }
}

// ---- The background thread.

void MessengerCore::RunInBackground() {
  mutex_.Lock();
  uint64_t seen = 0;
  while (!stops_) {
    if (mover_ == Mover::kWaiter || !endpoint_->status().ok()) {
      Rest(-1);
    } else if (!followers_.empty()) {
      PassOn();
      Rest(kDozeMilliseconds);
    } else if (waits_ != seen && !HasWork()) {
      seen = waits_;
      Rest(kDozeMilliseconds);
    } else {
      mover_ = Mover::kBackground;
      MoveInBackground();
      if (mover_ == Mover::kBackground) mover_ = Mover::kNobody;
    }
  }
  mutex_.Unlock();
}

// Until a thread waits.
void MessengerCore::MoveInBackground() {
  while (mover_ == Mover::kBackground && !stops_ && followers_.empty() &&
         endpoint_->status().ok()) {
    if (Step()) {
      LetOthersIn();
    } else if (PrepareSleep() && followers_.empty()) {
      Sleep(absl::InfiniteDuration(), Mover::kBackground);
    }
  }
}

void MessengerCore::Rest(int milliseconds) {
  resting_ = milliseconds < 0;
  pollfd polled = {rouse_.get(), POLLIN, 0};
  mutex_.Unlock();
  if (poll(&polled, 1, milliseconds) > 0) Clear(rouse_);
  mutex_.Lock();
  resting_ = false;
}

}  // namespace hvd::collectives::messages
