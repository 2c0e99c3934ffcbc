// The threads of a messenger: who moves data, and how the others wait.
#ifndef COLLECTIVES_MESSAGES_MESSENGER_CORE_H_
#define COLLECTIVES_MESSAGES_MESSENGER_CORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <thread>  // NOLINT: its own one
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/fd.h"
#include "collectives/messages/endpoint.h"
#include "collectives/messages/far_lines.h"
#include "collectives/messages/follower.h"
#include "collectives/messages/fork_mark.h"
#include "collectives/messages/host_lines.h"
#include "collectives/messages/transfer.h"

namespace hvd::collectives::messages {

// One thread at a time is the mover: it alone moves data that does not move when a transfer starts.
//   - A thread that waits becomes the mover, or follows: it sleeps until its transfer is done, or
//     until it can become the mover.
//   - Otherwise the background thread is. It sleeps in a poll, and peers ring this rank's bell.
// Taking the background thread's place costs two system calls, so a thread that has waited does not
// hand over at once: the background thread only looks each millisecond whether threads still come
// to wait, and takes over once none does. So two ranks that answer each other's messages make no
// system call. While a thread waits for longer, the background thread sleeps.
//
// See Messenger for the public methods.
class MessengerCore {
 public:
  // `host` nullptr: this rank is alone on its host; `far` nullptr: all ranks are on it. They are
  // connected with `endpoint`.
  // Errors:
  //   - ResourceExhausted, or another code for the errno: no file descriptor.
  static absl::StatusOr<std::unique_ptr<MessengerCore>> Start(std::unique_ptr<Endpoint> endpoint,
                                                              std::unique_ptr<HostLines> host,
                                                              std::unique_ptr<FarLines> far);
  ~MessengerCore();

  bool IsOwnProcess() const { return fork_mark_.IsOwnProcess(); }

  TransferPtr Send(int peer, const Message& message, const void* data, size_t bytes,
                   std::function<void()> then);
  TransferPtr Receive(int source_or_any, const Message& message, void* data, size_t bytes,
                      std::function<void()> then);
  bool WaitAWhile(const Transfer& transfer, absl::Duration most);
  void OnBroken(std::function<void(const absl::Status&)> listener);
  bool broken() const;
  void Leave();
  void Abort(const absl::Status& why);

 private:
  enum class Mover { kNobody, kWaiter, kBackground };
  struct Waiting {
    const Transfer* transfer;
    Follower follower;
  };

  MessengerCore(std::unique_ptr<Endpoint> endpoint, std::unique_ptr<HostLines> host,
                std::unique_ptr<FarLines> far, Fd wake, Fd rouse);

  template <typename Begin>
  TransferPtr StartTransfer(Begin begin);

  // The mover's part.
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> MoveAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PullOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PrepareSleep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Sleep(absl::Duration timeout, Mover as) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetOthersIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A waiting thread's part.
  bool MoveUntilDone(const Transfer& transfer, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Look(const Transfer& transfer) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Follow(const Transfer& transfer, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PassOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The background thread's part.
  void RunInBackground() ABSL_LOCKS_EXCLUDED(mutex_);
  void MoveInBackground() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Rest(int milliseconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // To be called after each change of the endpoint: wakes those that it concerns.
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeDone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls the callbacks, without the lock.
  void CallBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ForkMark fork_mark_;
  const Fd wake_;   // an eventfd: ends the mover's sleep
  const Fd rouse_;  // an eventfd: ends the background thread's sleep, whatever it does

  mutable absl::Mutex mutex_;
  const std::unique_ptr<Endpoint> endpoint_ ABSL_PT_GUARDED_BY(mutex_);
  // Used under the lock, too, except where they say otherwise.
  const std::unique_ptr<HostLines> host_;
  const std::unique_ptr<FarLines> far_;

  Mover mover_ ABSL_GUARDED_BY(mutex_) = Mover::kNobody;
  bool asleep_ ABSL_GUARDED_BY(mutex_) = false;                // the mover
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;                 // wake_ was written
  const Transfer* awaited_ ABSL_GUARDED_BY(mutex_) = nullptr;  // by the mover
  std::list<Waiting*> followers_ ABSL_GUARDED_BY(mutex_);
  bool resting_ ABSL_GUARDED_BY(mutex_) = false;  // the background thread, until it is roused
  uint64_t waits_ ABSL_GUARDED_BY(mutex_) = 0;    // that have ended
  uint32_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(const absl::Status&)> listener_ ABSL_GUARDED_BY(mutex_);
  bool listener_is_due_ ABSL_GUARDED_BY(mutex_) = false;

  std::atomic<bool> has_work_{false};  // tells a mover that looks without the lock
  std::atomic<int> entering_{0};       // threads that are about to take the lock
  std::thread thread_;
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_MESSENGER_CORE_H_
