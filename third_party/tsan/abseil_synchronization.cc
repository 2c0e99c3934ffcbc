// Lets ThreadSanitizer see Abseil's locks. Debian's Abseil is built without it, so that what a
// Mutex orders looks like a race.
//
// These definitions stand in for the library's in every binary built with --config=tsan, for our
// own calls and for those from gRPC. Each calls the real function and tells the sanitizer what it
// orders: what happened before a lock is given back happens before it is taken next. A condition is
// evaluated by any thread that holds the lock, so it is wrapped to say the same.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace {

// The next definition of the same symbol after the binary's own: the library's.
template <typename Function>
Function* Real(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

void Acquire(const void* object) { __tsan_acquire(const_cast<void*>(object)); }
void Release(const void* object) { __tsan_release(const_cast<void*>(object)); }

struct Guarded {
  absl::Mutex* mutex;
  const absl::Condition* condition;
};

// What the waiting thread has written there is ordered by the Mutex's own list of waiters, which the
// sanitizer does not see.
__attribute__((no_sanitize_thread)) bool EvalGuarded(void* argument) {
  const Guarded guarded = *static_cast<Guarded*>(argument);
  Acquire(guarded.mutex);
  const bool holds = guarded.condition->Eval();
  Release(guarded.mutex);
  return holds;
}

}  // namespace

// The symbols are those of Debian's inline namespace, absl::debian3.
#define REAL(function, symbol) static auto* const real = Real<function>("_ZN" #symbol)
#define REAL_CONST(function, symbol) static auto* const real = Real<function>("_ZNK" #symbol)

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  REAL(void(Mutex*), 4absl7debian35Mutex4LockEv);
  real(this);
  Acquire(this);
}

void Mutex::Unlock() {
  REAL(void(Mutex*), 4absl7debian35Mutex6UnlockEv);
  Release(this);
  real(this);
}

bool Mutex::TryLock() {
  REAL(bool(Mutex*), 4absl7debian35Mutex7TryLockEv);
  const bool locked = real(this);
  if (locked) Acquire(this);
  return locked;
}

void Mutex::ReaderLock() {
  REAL(void(Mutex*), 4absl7debian35Mutex10ReaderLockEv);
  real(this);
  Acquire(this);
}

void Mutex::ReaderUnlock() {
  REAL(void(Mutex*), 4absl7debian35Mutex12ReaderUnlockEv);
  Release(this);
  real(this);
}

void Mutex::LockWhen(const Condition& condition) {
  REAL(void(Mutex*, const Condition&), 4absl7debian35Mutex8LockWhenERKNS0_9ConditionE);
  Guarded guarded{this, &condition};
  real(this, Condition(EvalGuarded, &guarded));
  Acquire(this);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  REAL(bool(Mutex*, const Condition&, Duration),
       4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE);
  Guarded guarded{this, &condition};
  const bool holds = real(this, Condition(EvalGuarded, &guarded), timeout);
  Acquire(this);
  return holds;
}

void Mutex::Await(const Condition& condition) {
  REAL(void(Mutex*, const Condition&), 4absl7debian35Mutex5AwaitERKNS0_9ConditionE);
  Guarded guarded{this, &condition};
  Release(this);
  real(this, Condition(EvalGuarded, &guarded));
  Acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  REAL(bool(Mutex*, const Condition&, Duration),
       4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE);
  Guarded guarded{this, &condition};
  Release(this);
  const bool holds = real(this, Condition(EvalGuarded, &guarded), timeout);
  Acquire(this);
  return holds;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  REAL(bool(Mutex*, const Condition&, Time),
       4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE);
  Guarded guarded{this, &condition};
  Release(this);
  const bool holds = real(this, Condition(EvalGuarded, &guarded), deadline);
  Acquire(this);
  return holds;
}

void CondVar::Wait(Mutex* mutex) {
  REAL(void(CondVar*, Mutex*), 4absl7debian37CondVar4WaitEPNS0_5MutexE);
  Release(mutex);
  real(this, mutex);
  Acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  REAL(bool(CondVar*, Mutex*, Duration),
       4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE);
  Release(mutex);
  const bool timed_out = real(this, mutex, timeout);
  Acquire(mutex);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  REAL(bool(CondVar*, Mutex*, Time),
       4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE);
  Release(mutex);
  const bool timed_out = real(this, mutex, deadline);
  Acquire(mutex);
  return timed_out;
}

void Notification::Notify() {
  REAL(void(Notification*), 4absl7debian312Notification6NotifyEv);
  Release(this);
  real(this);
}

void Notification::WaitForNotification() const {
  REAL_CONST(void(const Notification*), 4absl7debian312Notification19WaitForNotificationEv);
  real(this);
  Acquire(this);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  REAL_CONST(bool(const Notification*, Duration),
             4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE);
  const bool notified = real(this, timeout);
  Acquire(this);
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  REAL_CONST(bool(const Notification*, Time),
             4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE);
  const bool notified = real(this, deadline);
  Acquire(this);
  return notified;
}

bool BlockingCounter::DecrementCount() {
  REAL(bool(BlockingCounter*), 4absl7debian315BlockingCounter14DecrementCountEv);
  Release(this);
  return real(this);
}

void BlockingCounter::Wait() {
  REAL(void(BlockingCounter*), 4absl7debian315BlockingCounter4WaitEv);
  real(this);
  Acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
