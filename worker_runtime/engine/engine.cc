#include "worker_runtime/engine/engine.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "worker_runtime/engine/engine_loop.h"
#include "worker_runtime/negotiation/message_sizes.h"

namespace hvd::worker_runtime::engine {
namespace {

// A wait that takes this long is announced to rank 0; see DeadlockDetector.
constexpr absl::Duration kBlockedAfter = absl::Milliseconds(100);
// The longest WaitAWhile. A signal that arrives just before the futex call does not interrupt
// it, so this also bounds how late the caller's signal handlers run.
constexpr absl::Duration kAWhile = absl::Seconds(1);

// Binds the engine's thread to the core that the settings name for this local rank. A core that
// does not exist, or too few cores for the local ranks, cause a warning only.
void Pin(std::thread& thread, const EngineOptions& options) {
  const auto index = static_cast<size_t>(options.local_rank);
  const std::vector<int>& cores = options.settings.thread_affinity;
  if (cores.empty()) return;
  if (index >= cores.size()) {
    if (options.on_warning) {
      options.on_warning(absl::StrCat("HOROVOD_THREAD_AFFINITY names no core for local rank ",
                                      index, ": the engine's thread is not bound"));
    }
    return;
  }
  const int core = cores[index];
  int error = EINVAL;
  if (core >= 0 && core < CPU_SETSIZE) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(core, &mask);
    error = pthread_setaffinity_np(thread.native_handle(), sizeof(mask), &mask);
  }
  if (error != 0 && options.on_warning) {
    options.on_warning(
        absl::StrCat("can't bind the engine's thread to core ", core, ": ", strerror(error)));
  }
}

class EngineImpl : public Engine {
 public:
  EngineImpl(const EngineOptions& options, collectives::Communicator& communicator,
             std::unique_ptr<control::ControlChannel> control)
      : size_(communicator.size()),
        process_set_(options.process_set),
        recorder_(options.recorder),
        loop_(std::make_unique<EngineLoop>(options, communicator, std::move(control), queue_,
                                           blocked_)),
        thread_(StartSignalFreeThread([loop = loop_.get()] { loop->Run(); })) {
    Pin(thread_, options);
  }

  ~EngineImpl() override { Shutdown(); }

  absl::StatusOr<Handle> Submit(std::vector<negotiation::SignaturePtr> signatures,
                                std::vector<TensorMemory> memory, bool waits) override {
    ASSIGN_OR_RETURN(Handle operation, NewOperation(std::move(signatures), std::move(memory)));
    ASSIGN_OR_RETURN(const bool engine_may_sleep, Enqueue(operation));
    if (engine_may_sleep && !waits) WithLoop([](EngineLoop& loop) { loop.Wake(); });
    return operation;
  }

  absl::Status SubmitThen(std::vector<negotiation::SignaturePtr> signatures,
                          std::vector<TensorMemory> memory,
                          std::function<void(Handle)> then) override {
    if (getpid() != process_) {
      return absl::FailedPreconditionError(
          "this process was forked from the one that is in the world; its operations never end");
    }
    ASSIGN_OR_RETURN(Handle operation, NewOperation(std::move(signatures), std::move(memory)));
    operation->then = std::move(then);
    RETURN_IF_ERROR(Enqueue(operation).status());
    WithLoop([](EngineLoop& loop) { loop.Hurry(); });
    return absl::OkStatus();
  }

  absl::Status Wait(const Handle& operation) override {
    Help(*operation);
    if (!operation->done.WaitFor(kBlockedAfter)) {
      AddBlocked(operation);
      operation->done.Wait();
      blocked_.Remove(operation);
    }
    return operation->status;
  }

  bool WaitAWhile(const Handle& operation, absl::Duration most) override {
    Completion& done = operation->done;
    Help(*operation);
    Completion::Woken woken = done.WaitForOrSignal(std::min(most, kBlockedAfter));
    if (woken == Completion::Woken::kTimedOut && most > kBlockedAfter) {
      AddBlocked(operation);
      woken = done.WaitForOrSignal(std::min(most - kBlockedAfter, kAWhile));
    }
    // After a while the caller waits again, so the wait stays registered as blocked. After a signal
    // it may never come back: a handler may have raised an exception. Nor after a time of its own.
    const bool may_be_left = woken != Completion::Woken::kTimedOut || most < kAWhile;
    if (may_be_left && operation->blocks.load(std::memory_order_relaxed)) {
      blocked_.Remove(operation);
      if (woken != Completion::Woken::kDone) {
        WithLoop([](EngineLoop& loop) { loop.GiveUpWait(); });
      }
    }
    return woken == Completion::Woken::kDone;
  }

  void Shutdown() override {
    absl::MutexLock lock(&shutdown_mutex_);
    if (!thread_.joinable()) return;
    if (getpid() != process_) {
      // A forked child has inherited the object but not the thread, and must not leave the world in
      // its parent's name.
      thread_.detach();
      return;
    }
    WithLoop([](EngineLoop& loop) { loop.Leave(); });
    thread_.join();
    absl::MutexLock loop_lock(&loop_mutex_);
    loop_.reset();
  }

  void OrderTimeline(negotiation::TimelineOrder order,
                     std::shared_ptr<timeline::TraceFile> file) override {
    absl::ReaderMutexLock lock(&loop_mutex_);
    if (loop_ != nullptr) {
      loop_->OrderTimeline(std::move(order), std::move(file));
    } else if (file != nullptr) {
      file->Close();
    }
  }

  void SetWorldChanging() override {
    WithLoop([](EngineLoop& loop) { loop.SetWorldChanging(); });
  }

  void Abort(absl::Status reason) override {
    WithLoop([&](EngineLoop& loop) { loop.Abort(reason); });
  }

 private:
  absl::StatusOr<Handle> NewOperation(std::vector<negotiation::SignaturePtr> signatures,
                                      std::vector<TensorMemory> memory) const {
    if (signatures.empty()) return absl::InvalidArgumentError("there is nothing to submit");
    for (size_t i = 0; i < signatures.size(); ++i) {
      RETURN_IF_ERROR(CheckRequest(*signatures[i], memory[i], size_));
    }
    RETURN_IF_ERROR(negotiation::CheckSize(signatures));
    auto operation = std::make_shared<Operation>();
    operation->unfinished = signatures.size();
    operation->results.resize(signatures.size());
    operation->signatures = std::move(signatures);
    operation->requests = std::move(memory);
    return operation;
  }

  // Returns whether the engine's thread may be asleep and must be woken.
  absl::StatusOr<bool> Enqueue(const Handle& operation) {
    operation->submission = recorder_->Queued(process_set_, operation->signatures);
    absl::StatusOr<bool> engine_may_sleep = queue_.Push(operation);
    if (!engine_may_sleep.ok()) RecordRefusal(*operation);
    return engine_may_sleep;
  }

  void Help(const Operation& operation) {
    if (operation.done.done()) return;
    WithLoop([&](EngineLoop& loop) { loop.Help(operation.done); });
  }

  void AddBlocked(const Handle& operation) {
    operation->blocks.store(true, std::memory_order_relaxed);
    if (blocked_.Add(operation)) WithLoop([](EngineLoop& loop) { loop.Wake(); });
  }

  // Ends the timeline's "queued" spans of an operation that the queue has refused.
  void RecordRefusal(const Operation& operation) {
    for (size_t i = 0; i < operation.signatures.size(); ++i) {
      recorder_->Planned(process_set_, operation.submission, i, operation.signatures[i]);
    }
  }

  // Calls f unless the loop has ended. A reader lock: several threads may be inside at once, while
  // Shutdown, which destroys the loop, excludes them all.
  void WithLoop(absl::FunctionRef<void(EngineLoop&)> f) {
    absl::ReaderMutexLock lock(&loop_mutex_);
    if (loop_ != nullptr) f(*loop_);
  }

  const int size_;
  const int process_set_;
  const std::shared_ptr<timeline::Recorder> recorder_;
  const pid_t process_ = getpid();
  TensorQueue queue_;
  BlockedWaits blocked_;
  absl::Mutex loop_mutex_;
  // Destroyed with its thread, so that an engine that outlives Shutdown() for the sake of its
  // handles keeps no sockets open.
  std::unique_ptr<EngineLoop> loop_ ABSL_PT_GUARDED_BY(loop_mutex_);
  absl::Mutex
      shutdown_mutex_;  // held while the thread ends, so that all callers of Shutdown wait for it
  std::thread thread_;
};

}  // namespace

absl::StatusOr<Engine::Handle> Engine::Submit(std::vector<TensorRequest> requests) {
  std::vector<negotiation::SignaturePtr> signatures;
  std::vector<TensorMemory> memory;
  SplitRequests(std::move(requests), signatures, memory);
  return Submit(std::move(signatures), std::move(memory), /*waits=*/false);
}

std::unique_ptr<Engine> Engine::Start(const EngineOptions& options,
                                      collectives::Communicator& communicator,
                                      std::unique_ptr<control::ControlChannel> control) {
  EngineOptions complete = options;
  if (complete.recorder == nullptr) complete.recorder = std::make_shared<timeline::Recorder>();
  return std::make_unique<EngineImpl>(complete, communicator, std::move(control));
}

}  // namespace hvd::worker_runtime::engine
