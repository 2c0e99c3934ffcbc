// The worker's training progress, which it reports to the daemon when it asks for the next world.
#ifndef WORKER_RUNTIME_API_TRAINING_PROGRESS_H_
#define WORKER_RUNTIME_API_TRAINING_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/rendezvous.pb.h"

namespace hvd::worker_runtime::api {

// Counts from the beginning of training or from the newest commit, whichever is later.
// Thread-safe.
class TrainingProgress {
 public:
  // Returns to the initial state.
  void Reset();
  void BeginTraining();
  // Sets the newest commit to one made by an earlier process, without any progress since.
  void Restore(uint64_t commit) { commit_.store(commit); }
  // The newest commit that this process can restore; 0: none.
  uint64_t commit() const { return commit_.load(); }
  // See hvd_set_commit. Starts counting steps from 0.
  void SetCommit(uint64_t number);
  void CountStep() { steps_.fetch_add(1, std::memory_order_relaxed); }
  // Records that an operation was completed.
  void NoteWork() { worked_.store(true, std::memory_order_relaxed); }
  // The operations so far do not count.
  void ForgetWork() { worked_.store(false, std::memory_order_relaxed); }
  // Records the error because of which this process is about to leave the world.
  void NoteError(const std::string& text, bool caused_by_peer);
  // Records the rank of that world that the network did not reach; nullopt: it reached all.
  void NoteUnreached(std::optional<int> rank);

  // Returns the progress in the world just left, as a request to join the next one, and clears it:
  // a second call returns the commit's number only.
  pb::JoinWorldRequest TakeWord();

 private:
  std::atomic<uint64_t> commit_{0};
  std::atomic<bool> worked_{false};      // since training began
  std::atomic<uint64_t> steps_{0};       // since training began or since the newest commit
  std::atomic<int64_t> steps_since_{0};  // nanoseconds since boot; 0: training has not begun
  absl::Mutex mutex_;
  std::string error_ ABSL_GUARDED_BY(mutex_);
  bool caused_by_peer_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<int> unreached_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_TRAINING_PROGRESS_H_
