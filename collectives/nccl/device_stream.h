// The CUDA driver calls that GuardedComm and StagingPipeline need, on one stream of one device.
#ifndef COLLECTIVES_NCCL_DEVICE_STREAM_H_
#define COLLECTIVES_NCCL_DEVICE_STREAM_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/nccl/abi.h"
#include "collectives/nccl/device_memory.h"
#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {

// Not safe for concurrent use, except ScopedDevice and memory(). Holds the device's primary
// context, the one that frameworks use.
// Errors of all methods, unless they list others:
//   - Internal: the driver's error for the call.
//   - ResourceExhausted: no memory.
class DeviceStream {
 public:
  // `cuda` must outlive the stream.
  // Errors:
  //   - InvalidArgument: there is no such device.
  static absl::StatusOr<std::unique_ptr<DeviceStream>> Create(const CudaFunctions& cuda,
                                                              int device);
  // REQUIRES: the stream has no pending work, or that work may be abandoned.
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  int device() const { return device_; }
  // The device's UUID: the same in all processes.
  absl::StatusOr<std::string> Uuid() const;
  CudaStream* get() const { return stream_; }
  // For memory that has to outlive the stream.
  DeviceMemory& memory() { return *memory_; }

  // RAII: makes the device current for this thread's calls of CUDA and NCCL.
  class ScopedDevice {
   public:
    explicit ScopedDevice(const DeviceStream& stream) : context_(stream.cuda_, stream.context_) {}

   private:
    const ScopedContext context_;
  };

  // REQUIRES, for all methods below: this thread has a ScopedDevice.

  // Makes later work on the stream wait for `event`.
  absl::Status WaitFor(CudaEvent* event);
  // Makes later work on the stream wait for the work so far of `other`, on the same device.
  absl::Status Follow(DeviceStream& other);
  // Blocks until all work is done: without limit if it waits for an event that never happens.
  absl::Status Synchronize();
  // Records an event after the work so far, for Done().
  absl::Status Mark();
  // Whether all work before the last Mark() is done. Does not block.
  absl::StatusOr<bool> Done();

  // Device memory of at least `bytes` bytes with any content, one block for each purpose. Valid
  // until the next call for the same purpose.
  enum Purpose { kOwn, kCallers };
  absl::StatusOr<void*> Scratch(Purpose purpose, size_t bytes);
  // Host memory with any content that is page-locked, so that the device copies to and from it at
  // the full speed of the bus, beside this thread. FreeHost waits until the device is idle.
  absl::StatusOr<void*> AllocateHost(size_t bytes);
  void FreeHost(void* memory);
  // Page-locks memory of the caller's, until it is unlocked, which must be before it is unmapped.
  absl::Status LockHost(void* memory, size_t bytes);
  void UnlockHost(void* memory);

  // Start an asynchronous copy on the stream. Host memory must stay valid until it is done. If that
  // is not page-locked, the call may block until the copy is done.
  absl::Status CopyToHost(void* to, const void* from, size_t bytes);
  absl::Status CopyFromHost(void* to, const void* from, size_t bytes);
  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes);

 private:
  DeviceStream(const CudaFunctions& cuda, int device, CudaContext* context)
      : cuda_(cuda), device_(device), context_(context) {}
  absl::Status Check(CudaResult result, absl::string_view what) const;

  const CudaFunctions& cuda_;
  const int device_;
  CudaContext* const context_;
  CudaStream* stream_ = nullptr;
  CudaEvent* event_ = nullptr;
  std::shared_ptr<DeviceMemory> memory_;
  struct Memory {
    CudaAddress address = 0;
    size_t bytes = 0;
  };
  Memory scratch_[2];  // by purpose
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_DEVICE_STREAM_H_
