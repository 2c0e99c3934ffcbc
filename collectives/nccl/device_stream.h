// One stream of one CUDA device: what of the driver the communicator needs.
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

namespace hvd::collectives::nccl {

// Not safe for concurrent use, except that ScopedDevice and memory() may be. Holds the device's
// primary context, the one that frameworks use. Errors of all methods, unless they say otherwise:
//   Internal: the driver's word on what it was asked for.   ResourceExhausted: no memory.
class DeviceStream {
 public:
  // `cuda` must outlive the stream.   InvalidArgument: there is no such device.
  static absl::StatusOr<std::unique_ptr<DeviceStream>> Create(const CudaFunctions& cuda,
                                                              int device);
  // REQUIRES: nothing is under way on the stream, or it can be given up.
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  int device() const { return device_; }
  // The same wherever the device is seen from, and no other's.
  absl::StatusOr<std::string> Uuid() const;
  CudaStream* get() const { return stream_; }
  // For what has to outlive the stream.
  DeviceMemory& memory() { return *memory_; }

  // While it lives, this thread's calls of CUDA and NCCL are for the device.
  class ScopedDevice {
   public:
    explicit ScopedDevice(const DeviceStream& stream);
    ~ScopedDevice();
    ScopedDevice(const ScopedDevice&) = delete;
    ScopedDevice& operator=(const ScopedDevice&) = delete;

   private:
    const CudaFunctions& cuda_;
  };

  // The following need a ScopedDevice.

  // What comes after it on the stream runs when `event` has happened.
  absl::Status WaitFor(CudaEvent* event);
  // Waits until everything has been done; an event that never happens is waited for for ever.
  absl::Status Synchronize();
  // Marks the place that Done() asks about.
  absl::Status Mark();
  // Whether everything before the last Mark() has been done.
  absl::StatusOr<bool> Done();

  // Device memory of at least `bytes` bytes, kept until more is asked for; one for each purpose.
  enum Purpose { kOwn, kCallers };
  absl::StatusOr<void*> Scratch(Purpose purpose, size_t bytes);
  // Started; done when the stream has done them. Host memory must live until then.
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
