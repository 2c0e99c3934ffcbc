#include "rendezvous/server/driver.h"

#include <algorithm>
#include <utility>

#include "base/failpoint/failpoint.h"

namespace hvd::rendezvous::server {

Driver::Driver(StateMachine machine, EffectHandler handler, Clock& clock)
    : machine_(std::move(machine)),
      handler_(std::move(handler)),
      clock_(clock),
      thread_([this] { Loop(); }) {}

Driver::~Driver() { Stop(); }

void Driver::Post(membership::Event event, size_t bytes) { Enqueue(std::move(event), bytes); }

void Driver::Run(std::function<void()> task) {
  if (IsLoop()) return task();
  Enqueue(std::move(task), 0);
}

void Driver::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Driver::Enqueue(Item item, size_t bytes) {
  absl::MutexLock lock(&mu_);
  if (stopping_) return;
  queue_.push_back(std::move(item));
  queued_bytes_ += sizeof(Item) + bytes;
}

size_t Driver::waiting() {
  absl::MutexLock lock(&mu_);
  return queued_bytes_ + batch_bytes_;
}

void Driver::Loop() {
  {
    absl::MutexLock lock(&mu_);
    // Set by the thread itself: thread_ may not have been assigned yet when the first task asks
    // whether it runs on this thread.
    loop_ = std::this_thread::get_id();
  }
  std::vector<Item> batch;
  while (Next(batch)) {
    Work(batch);
    batch.clear();
    // Checked after every batch, so that a busy queue does not delay deadlines.
    const absl::Time now = clock_.Now();
    const membership::Event tick = membership::Tick{};
    if (now >= NextDeadline() && Record({&tick}, now)) Apply(tick, now);
  }
}

void Driver::Work(std::vector<Item>& batch) {
  const absl::Time now = clock_.Now();
  // All events of the batch get the same time, which is the one that the journal records for them.
  std::vector<const membership::Event*> events;
  for (const Item& item : batch) {
    if (const membership::Event* event = std::get_if<membership::Event>(&item))
      events.push_back(event);
  }
  // Write-ahead: the whole batch is made durable, with one sync, before the first of its events is
  // applied and its effects become visible. If that fails no event is applied, but queued tasks
  // (status reports) still run.
  const bool safe = Record(events, now);
  for (Item& item : batch) {
    // Checked for each event, not for each batch, so that Stop waits for little more than one
    // event.
    if (stopping()) return;
    const membership::Event* event = std::get_if<membership::Event>(&item);
    if (event == nullptr) {
      std::get<std::function<void()>>(item)();
    } else if (safe) {
      Apply(*event, now);
    }
  }
}

bool Driver::Record(const std::vector<const membership::Event*>& events, absl::Time now) {
  // A failure is final: the journal would have a gap, and a daemon that replays it would decide
  // otherwise than this one has.
  if (!unsafe_ && machine_.record && !events.empty()) unsafe_ = !machine_.record(events, now);
  return !unsafe_;
}

absl::Time Driver::NextDeadline() const {
  // With an unsafe journal no Tick is applied, so its deadline would stay in the past and this
  // thread would spin.
  return unsafe_ ? absl::InfiniteFuture() : machine_.next_deadline();
}

// Takes all queued items at once, so that a burst of events costs one journal sync.
bool Driver::Next(std::vector<Item>& batch) {
  // Before the lock is taken: the machine is never called under it. Only this thread changes the
  // machine, so the deadline stays valid.
  const absl::Time deadline = NextDeadline();
  absl::MutexLock lock(&mu_);
  busy_since_ = absl::InfiniteFuture();
  batch_bytes_ = 0;
  clock_.AwaitWithDeadline(mu_, absl::Condition(this, &Driver::Awake), deadline);
  busy_since_ = clock_.Now();
  // Also when stopping: the dropped tasks are destroyed with the batch, which ends the waits of
  // their callers (see Job::Report).
  batch.swap(queue_);
  std::swap(batch_bytes_, queued_bytes_);
  return !stopping_;
}

absl::Duration Driver::BusyFor() {
  absl::MutexLock lock(&mu_);
  // Negative while the thread waits, and after the clock was set back.
  return std::max(absl::ZeroDuration(), clock_.Now() - busy_since_);
}

bool Driver::Awake() const { return stopping_ || !queue_.empty(); }

bool Driver::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

bool Driver::IsLoop() const {
  absl::MutexLock lock(&mu_);
  return loop_ == std::this_thread::get_id();
}

void Driver::Apply(const membership::Event& event, absl::Time now) {
  std::vector<membership::Effect> effects = machine_.apply(event, now);
  FAILPOINT("daemon.event.decided");
  for (membership::Effect& effect : effects) handler_(std::move(effect));
}

}  // namespace hvd::rendezvous::server
