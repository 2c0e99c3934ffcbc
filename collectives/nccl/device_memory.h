// The memory pool of a CUDA device, for results whose sizes are not known beforehand.
#ifndef COLLECTIVES_NCCL_DEVICE_MEMORY_H_
#define COLLECTIVES_NCCL_DEVICE_MEMORY_H_

#include <cstddef>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "collectives/nccl/abi.h"

namespace hvd::collectives::nccl {

// Thread-safe. Keeps some of the returned memory for reuse, since the driver synchronises the
// device when memory is allocated or freed. Each allocation keeps the pool alive, so it may outlive
// streams and communicators.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  // `cuda` must never be destroyed.
  // Errors:
  //   - InvalidArgument, Internal: the device can't be used.
  static absl::StatusOr<std::shared_ptr<DeviceMemory>> Create(const CudaFunctions& cuda,
                                                              int device);
  // Frees the memory.
  // REQUIRES: the device no longer uses it, or this thread may block until then.
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Allocates `bytes` (> 0) with any content. When the last copy of the pointer is destroyed, the
  // memory returns to the pool without blocking; no operation may be using it then.
  // Errors:
  //   - ResourceExhausted: the device is full.
  //   - Internal: the driver's error.
  absl::StatusOr<std::shared_ptr<void>> Take(size_t bytes);

 private:
  DeviceMemory(const CudaFunctions& cuda, int device, CudaContext* context)
      : cuda_(cuda), device_(device), context_(context) {}
  absl::StatusOr<CudaAddress> Allocate(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeAllBut(size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(CudaAddress address, size_t bytes);

  const CudaFunctions& cuda_;
  const int device_;
  CudaContext* const context_;
  absl::Mutex mutex_;
  std::multimap<size_t, CudaAddress> unused_ ABSL_GUARDED_BY(mutex_);  // by their sizes
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_DEVICE_MEMORY_H_
