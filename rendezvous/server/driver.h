// The driver of the membership state machine: one thread, one queue, one event at a time.
#ifndef RENDEZVOUS_SERVER_DRIVER_H_
#define RENDEZVOUS_SERVER_DRIVER_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::server {

// The functions of the driven state machine: those of Membership, or of a scripted one in tests.
// Only the driver's thread calls them.
struct StateMachine {
  std::function<std::vector<membership::Effect>(const membership::Event&, absl::Time)> apply;
  std::function<absl::Time()> next_deadline;
  // Persists a batch of events before they are applied. Null: no journal. Returns false on failure;
  // the driver then applies no further event.
  std::function<bool(const std::vector<const membership::Event*>&, absl::Time)> record = nullptr;
};

// The thread applies posted events in order; all events of one batch get the same time. Each effect
// is passed to the handler before the next event is applied. When the machine's deadline has
// passed, the thread applies a Tick. Neither the machine nor the handler is called under a lock.
// Thread-safe.
class Driver {
 public:
  using EffectHandler = std::function<void(membership::Effect)>;

  // Starts the thread. `handler` must not block; it may post.
  Driver(StateMachine machine, EffectHandler handler, Clock& clock);
  // Calls Stop.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Queues an event, whose contents take `bytes` besides the event itself. Dropped once the driver
  // has stopped.
  void Post(membership::Event event, size_t bytes = 0);

  // Queues a task that the driver's thread runs between two events. Called from that thread, it
  // runs the task at once. Dropped once the driver has stopped.
  void Run(std::function<void()> task);

  // The bytes of the events and tasks that are not done yet.
  size_t waiting();

  // How long the thread has been busy with the current batch; zero if it waits. More than moments
  // means that it hangs in a write to the journal.
  absl::Duration BusyFor();

  // Ends the thread after the current event and joins it; the queue is dropped. REQUIRES: the
  // caller is another thread.
  void Stop();

 private:
  using Item = std::variant<membership::Event, std::function<void()>>;

  void Enqueue(Item item, size_t bytes);
  void Loop();
  // Waits for the next items or deadline. Returns false if the driver must stop.
  bool Next(std::vector<Item>& batch);
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool stopping() const;
  bool IsLoop() const;
  // Returns false if no further event may be applied.
  bool Record(const std::vector<const membership::Event*>& events, absl::Time now);
  void Work(std::vector<Item>& batch);
  void Apply(const membership::Event& event, absl::Time now);
  absl::Time NextDeadline() const;

  const StateMachine machine_;
  const EffectHandler handler_;
  Clock& clock_;
  mutable absl::Mutex mu_;
  std::thread::id loop_ ABSL_GUARDED_BY(mu_);
  std::vector<Item> queue_ ABSL_GUARDED_BY(mu_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  size_t batch_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of the items that the thread works on
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time busy_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool unsafe_ = false;  // used by the thread only: events can't be recorded any more
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_DRIVER_H_
