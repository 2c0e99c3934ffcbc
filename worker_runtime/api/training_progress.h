// A worker's progress since training began or since its newest commit, as the daemon is told of it.
#ifndef WORKER_RUNTIME_API_TRAINING_PROGRESS_H_
#define WORKER_RUNTIME_API_TRAINING_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker_runtime/session/rendezvous_session.h"

namespace hvd::worker_runtime::api {

// Thread-safe.
class TrainingProgress {
 public:
  // As if made anew.
  void Reset();
  void BeginTraining();
  // A commit of an earlier process: nothing was done since.
  void Restore(uint64_t commit) { commit_.store(commit); }
  // See hvd_set_commit. Steps count from here on.
  void SetCommit(uint64_t number);
  void CountStep() { steps_.fetch_add(1, std::memory_order_relaxed); }
  // An operation was completed.
  void NoteWork() { worked_.store(true, std::memory_order_relaxed); }
  // The own error for which the world is about to be left.
  void NoteError(const std::string& text);

  // What is told of the world that was left, once: the next call tells of the commit only.
  session::Session::JoinRequest TakeWord();

 private:
  std::atomic<uint64_t> commit_{0};
  std::atomic<bool> worked_{false};      // since training began
  std::atomic<uint64_t> steps_{0};       // since then, or since the newest commit
  std::atomic<int64_t> steps_since_{0};  // nanoseconds after the machine's start; 0: nothing began
  absl::Mutex mutex_;
  std::string error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TRAINING_PROGRESS_H_
