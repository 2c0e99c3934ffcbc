// The streams and events of the simulated GPUs. A stream is a queue with a thread of its own, so
// work whose wait for other work is missing really runs beside it.
#ifndef TESTS_GPU_SIMULATED_DRIVER_STREAM_H_
#define TESTS_GPU_SIMULATED_DRIVER_STREAM_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace simulated_gpu {

// One recording of an event. Thread-safe.
class Mark {
 public:
  void Happen();
  void Await();
  bool happened();
  // REQUIRES: it has happened.
  std::chrono::steady_clock::time_point time();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
  std::chrono::steady_clock::time_point time_;
};

// Thread-safe. Its thread ends after Release() and the last work; it is never joined, as work may
// hang.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  static std::shared_ptr<Stream> Start(int device);

  int device() const { return device_; }
  void Enqueue(std::function<void()> work);
  // Waits for what has been enqueued so far.
  void Synchronize();
  bool IsIdle();
  void Release();

 private:
  explicit Stream(int device) : device_(device) {}
  void Run();
  std::function<void()> Next();

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  uint64_t enqueued_ = 0;
  uint64_t done_ = 0;
  bool released_ = false;
};

struct Event {
  const int device;
  const bool has_time;
  std::mutex mutex;
  std::shared_ptr<Mark> mark;  // of the last recording; none: it was never recorded
};

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_DRIVER_STREAM_H_
