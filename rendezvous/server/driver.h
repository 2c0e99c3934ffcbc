// The driver of the pure machine: one thread, one queue, one event at a time.
#ifndef RENDEZVOUS_SERVER_DRIVER_H_
#define RENDEZVOUS_SERVER_DRIVER_H_

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

// The state machine under the driver: Membership's two functions, or a script in tests. Only the
// driver's thread calls them.
struct StateMachine {
  std::function<std::vector<membership::Effect>(const membership::Event&, absl::Time)> apply;
  std::function<absl::Time()> next_deadline;
  // Persists a batch of events before they are applied. Null: no journal. Returns false on failure;
  // the driver then applies no further event.
  std::function<bool(const std::vector<const membership::Event*>&, absl::Time)> record = nullptr;
};

// Thread-safe. Its thread applies the posted events in their order; those queued at the same moment
// get the same time. It hands each effect to the handler before the next event is applied. When the
// machine's deadline has passed it applies a Tick. Neither function nor handler is called under a
// lock.
class Driver {
 public:
  using EffectHandler = std::function<void(membership::Effect)>;

  // Starts the thread. `handler` must not block; it may post.
  Driver(StateMachine machine, EffectHandler handler, Clock& clock);
  // Stops.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Queues an event. Dropped once the driver has stopped.
  void Post(membership::Event event);

  // Queues a task that the machine's thread runs between two events; runs it at once if that thread
  // is the caller. Dropped once the driver has stopped.
  void Run(std::function<void()> task);

  // How long the thread has been busy with its current work; zero: it waits. Nothing that it does
  // takes longer than moments, except on a disk that hangs.
  absl::Duration BusyFor();

  // Ends the thread after the current event and waits for it; the queue is dropped. REQUIRES: not
  // called from the thread itself.
  void Stop();

 private:
  using Item = std::variant<membership::Event, std::function<void()>>;

  void Enqueue(Item item);
  void Loop();
  // Waits for the next item or deadline. False: the driver must stop.
  bool Next(std::vector<Item>& batch);
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool stopping() const;
  bool IsLoop() const;
  // False: no event may be applied any more.
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
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time busy_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool unsafe_ = false;  // the thread's: events can't be recorded
  std::thread thread_;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_DRIVER_H_
