// The account of one simulated GPU's memory, which all processes share: what each of them holds.
#ifndef TESTS_GPU_SIMULATED_DRIVER_ACCOUNT_H_
#define TESTS_GPU_SIMULATED_DRIVER_ACCOUNT_H_

#include <cstddef>
#include <mutex>
#include <string>

namespace simulated_gpu {

// A table in a file that is mapped into every process, with an entry for each process. A process
// holds a lock of its entry, which the kernel drops when the process dies, however it dies. So what
// dead processes held does not count. Thread-safe.
class Account {
 public:
  // An empty `file` makes an account of this process alone.
  Account(const std::string& file, size_t total);

  // Whether there was enough.
  bool Take(size_t bytes);
  void GiveBack(size_t bytes);
  size_t total() const { return total_; }
  size_t Free();

 private:
  struct Entry;
  class Lock;

  void FindOwnEntry();
  bool IsHeld(int entry) const;
  size_t Held() const;

  const size_t total_;
  std::mutex mutex_;
  int file_ = -1;
  Entry* entries_ = nullptr;
  int own_ = -1;
};

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_DRIVER_ACCOUNT_H_
