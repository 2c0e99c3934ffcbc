// Memory of a CUDA device for results whose sizes nobody knows beforehand.
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

// Thread-safe. Keeps a little of what was given back, since taking memory from the driver and
// freeing it stop the device. Lives as long as any of its memory; that may be longer than streams
// and communicators.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  // `cuda` must live for ever.   InvalidArgument, Internal: the device can't be used.
  static absl::StatusOr<std::shared_ptr<DeviceMemory>> Create(const CudaFunctions& cuda,
                                                              int device);
  // Frees what was given back. REQUIRES: the device has nothing to do with it any more, or this
  // thread can wait for that.
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // `bytes` (> 0) with any content. Given back when the last copy of the pointer is gone, by when
  // nothing may be under way that uses it; that does not block.
  //   ResourceExhausted: the device is full.   Internal: the driver's word.
  absl::StatusOr<std::shared_ptr<void>> Take(size_t bytes);

 private:
  // The device's context, for this thread.
  class Scope;

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
