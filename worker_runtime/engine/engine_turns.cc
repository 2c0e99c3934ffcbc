// EngineLoop's turns: which thread works the rounds, and how the work goes from one to another.
//
// A round runs under turn_. The engine's thread gives turn_ up to sleep. A thread that waits tries
// turn_ once and then works in its place. No round is lost:
// - TryLock fails: the holder may have made the announcement of its round already. If something is
//   still unannounced, the engine's thread is woken and runs another round. A wake-up that comes
//   before it sleeps is kept.
// - The waiting thread's Receive may take a wake-up that was meant for the engine's thread. So one
//   more round is run before the turn ends.
// - The turn ends (HandOver): the engine's thread is woken if a round has failed, if something is
//   due before it would wake up by itself, or if messages have come since the last look. Else peers
//   ring for what comes next, or, with nothing in flight, it looks within kWatchTime.
#include <algorithm>

#include "base/clock.h"
#include "base/float_mode_guard.h"
#include "worker_runtime/engine/engine_loop.h"

namespace hvd::worker_runtime::engine {
namespace {

// The engine's thread runs a round this often while user threads take turns, so that peers need not
// wake it.
constexpr absl::Duration kWatchTime = absl::Milliseconds(2);

}  // namespace

void EngineLoop::Run() {
  const FloatModeGuard standard;  // a thread inherits its creator's floating-point mode
  while (true) {
    const absl::Duration sleep = TakeTurn();
    if (sleep > absl::ZeroDuration()) control_->AwaitWake(sleep);
    absl::MutexLock lock(&turn_);
    if (has_ended_) return;
  }
}

absl::Duration EngineLoop::TakeTurn() {
  absl::MutexLock lock(&turn_);
  control_->StayAwake();
  if (failed_.ok()) failed_ = RunCycle();
  if (!failed_.ok()) {
    End(failed_);
    has_ended_ = true;
    return absl::ZeroDuration();
  }
  absl::Duration sleep = ReceiveTimeout();
  const absl::Time now = Clock::Real().Now();
  const bool others_take_turns = now < helped_at_ + 2 * kWatchTime;
  if (others_take_turns) sleep = std::min(sleep, kWatchTime);
  sleeps_until_ = now + sleep;
  if (sleep == absl::ZeroDuration() || !control_->PrepareSleep()) return absl::ZeroDuration();
  if (others_take_turns && queue_.IsEmpty()) control_->TakeOver();  // see HandOver
  return sleep;
}

void EngineLoop::Hurry() {
  somebody_waits_.store(true);
  Wake();
}

void EngineLoop::GiveUpWait() {
  wait_given_up_.store(true);
  Wake();
}

void EngineLoop::Help(const Completion& done) {
  // About as long as waking a sleeping thread takes: to spin for longer gains nothing.
  constexpr absl::Duration kPatience = absl::Microseconds(50);
  somebody_waits_.store(true);
  const bool is_kept_back = queue_.TakeNewBy(absl::ZeroDuration()) != absl::InfiniteFuture();
  if (!control_->WaitsCheaply() || !turn_.TryLock()) {
    if (is_kept_back) Wake();
    return;
  }
  const FloatModeGuard standard;
  control_->TakeOver();
  while (failed_.ok()) {
    failed_ = RunCycle();
    if (!failed_.ok() || done.done()) break;
    failed_ = FillInbox(kPatience);
    if (!failed_.ok() || !inbox_.empty()) continue;
    // A Wake() meant for the engine's thread may have ended FillInbox instead. One more round sees
    // what it was for.
    failed_ = RunCycle();
    break;
  }
  HandOver();
  turn_.Unlock();
}

// The engine's thread must wake up in time for the next deadline and for messages. Waking it costs
// more than a small operation, so it is left asleep where its own timer is early enough.
void EngineLoop::HandOver() {
  const absl::Time now = Clock::Real().Now();
  helped_at_ = now;
  // With nothing in flight here, messages can wait until the engine's thread looks by itself within
  // kWatchTime. Without PrepareSleep the peers, which are mostly a step ahead, send no wake-ups.
  if (failed_.ok() && sleeps_until_ <= now + kWatchTime && queue_.IsEmpty()) return;
  const bool is_due = !failed_.ok() || now + ReceiveTimeout() < sleeps_until_;
  if (!control_->PrepareSleep() || is_due) Wake();
}

}  // namespace hvd::worker_runtime::engine
