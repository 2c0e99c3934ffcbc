// The CUDA stream of a framework that hands it over with each operation, as XLA and CuPy do.
#ifndef COLLECTIVES_NCCL_FOREIGN_STREAM_H_
#define COLLECTIVES_NCCL_FOREIGN_STREAM_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/nccl/abi.h"

namespace hvd::collectives::nccl {

// The source and the target of one copy, between the host and a device or on a device.
struct BusCopy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
};

// A view: the framework keeps the stream. Used by the framework's thread alone, which may have any
// context or none; it has the same one afterwards.
// Errors of all methods:
//   - Internal: the driver's error for the call.
//   - ResourceExhausted: no memory.
class ForeignStream {
 public:
  // `cuda` and `stream` must outlive this object.
  static absl::StatusOr<ForeignStream> Find(const CudaFunctions& cuda, CudaStream* stream);

  // For a stream of the device's primary context, which then stays open until the process ends.
  // `stream` may be one of CUDA's names for a default stream: nullptr and 1 for the legacy one, 2
  // for that of the calling thread.
  // Errors:
  //   - InvalidArgument: there is no such device.
  static absl::StatusOr<ForeignStream> Of(const CudaFunctions& cuda, int device,
                                          CudaStream* stream);

  // The device that has the memory at `address`.
  // Errors:
  //   - InvalidArgument: no device has it.
  static absl::StatusOr<int> DeviceOf(const CudaFunctions& cuda, const void* address);

  // The stream's CUDA device.
  int device() const { return device_; }

  // Makes an event after the work so far. The caller gives it to Forget.
  absl::StatusOr<CudaEvent*> Mark();
  void Forget(CudaEvent* event);

  // Copy after the work so far, and block until that and the copies are done, also if there are
  // none. Later work on the stream sees what was copied.
  absl::Status CopyToHost(absl::Span<const BusCopy> copies);
  absl::Status CopyToDevice(absl::Span<const BusCopy> copies);
  absl::Status CopyOnDevice(absl::Span<const BusCopy> copies);

  // `bytes` (> 0) of the device's memory with any content. Free waits until the device does not use
  // it any more.
  absl::StatusOr<void*> Allocate(size_t bytes);
  void Free(void* memory);

 private:
  ForeignStream(const CudaFunctions& cuda, CudaStream* stream, CudaContext* context)
      : cuda_(&cuda), stream_(stream), context_(context) {}
  absl::Status Check(CudaResult result, absl::string_view what) const;
  // Starts each copy, and blocks until all work on the stream is done. Returns the first error.
  absl::Status CopyAll(absl::Span<const BusCopy> copies, absl::string_view what,
                       absl::FunctionRef<CudaResult(const BusCopy&)> start);

  const CudaFunctions* cuda_;
  CudaStream* stream_;
  CudaContext* context_;
  int device_ = 0;
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_FOREIGN_STREAM_H_
