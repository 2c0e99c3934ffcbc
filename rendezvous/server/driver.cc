#include "rendezvous/server/driver.h"

#include <utility>

namespace hvd {

Driver::Driver(Machine machine, EffectHandler handler, Clock& clock)
    : machine_(std::move(machine)),
      handler_(std::move(handler)),
      clock_(clock),
      thread_([this] { Loop(); }) {}

Driver::~Driver() { Stop(); }

void Driver::Post(Event event) { Enqueue(std::move(event)); }

void Driver::Run(std::function<void()> task) {
  if (IsLoop()) return task();
  Enqueue(std::move(task));
}

void Driver::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Driver::Enqueue(Item item) {
  absl::MutexLock lock(&mu_);
  if (!stopping_) queue_.push_back(std::move(item));
}

void Driver::Loop() {
  {
    absl::MutexLock lock(&mu_);
    loop_ = std::this_thread::get_id();
  }
  std::vector<Item> batch;
  while (Next(batch)) {
    for (Item& item : batch) {
      if (stopping()) return;
      if (const Event* event = std::get_if<Event>(&item)) {
        Apply(*event);
      } else {
        std::get<std::function<void()>>(item)();
      }
    }
    batch.clear();
    // Also after a batch, or a busy queue would hold up time.
    if (clock_.Now() >= machine_.next_deadline()) Apply(Tick{});
  }
}

bool Driver::Next(std::vector<Item>& batch) {
  const absl::Time deadline = machine_.next_deadline();
  absl::MutexLock lock(&mu_);
  clock_.AwaitWithDeadline(mu_, absl::Condition(this, &Driver::Awake), deadline);
  batch.swap(queue_);
  return !stopping_;
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

void Driver::Apply(const Event& event) {
  for (Effect& effect : machine_.apply(event, clock_.Now())) handler_(std::move(effect));
}

}  // namespace hvd
