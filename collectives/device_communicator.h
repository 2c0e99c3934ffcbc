// The seam for tensors in a device's memory: a Communicator whose buffers lie there.
#ifndef COLLECTIVES_DEVICE_COMMUNICATOR_H_
#define COLLECTIVES_DEVICE_COMMUNICATOR_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cancellation.h"
#include "collectives/communicator.h"
#include "collectives/key_exchange.h"
#include "collectives/types.h"

namespace hvd::collectives {

// Thread-safety and errors as in Communicator; all buffers are in the memory of device(), unless a
// name says otherwise. A call returns when its result is there, so that any other stream may read
// it. If the communicator breaks, a call returns when the device touches its buffers no more, or
// when that can't be had in a few seconds.
class DeviceCommunicator : public Communicator {
 public:
  virtual int device() const = 0;

  // All later calls read and write their buffers only when `event`, a CUDA event that has been
  // recorded, has happened. It may be destroyed at once.
  virtual absl::Status WaitFor(void* event) = 0;

  // AllReduce of several stretches at once, of `factor` times their elements. All ranks have the
  // same counts, type, op and factor.
  //   Unimplemented: a factor other than 1 with an op other than kSum, or with integers.
  virtual absl::Status AllReduceScaled(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                                       double factor, const CallOptions& options) = 0;

  // ReduceScatter of `factor` times the elements; otherwise as AllReduceScaled.
  virtual absl::Status ReduceScatterScaled(const void* in, void* out,
                                           absl::Span<const size_t> counts, DataType type,
                                           ReduceOp op, double factor,
                                           const CallOptions& options) = 0;

  // `bytes` of the device's memory with any content, until the next call.
  virtual absl::StatusOr<void*> Reserve(size_t bytes) = 0;
  // The same for as long as there are copies of the pointer, which may outlive the communicator.
  // When the last one goes, on any thread, nothing may be under way that uses the memory. nullptr
  // for 0 bytes.   ResourceExhausted: the device is full; on this rank alone.
  virtual absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) = 0;

  // Copies on the device, and between it and the host.
  virtual absl::Status CopyOnDevice(void* to, const void* from, size_t bytes,
                                    const CallOptions& options) = 0;
  virtual absl::Status CopyToHost(void* to_host, const void* from, size_t bytes,
                                  const CallOptions& options) = 0;
  virtual absl::Status CopyFromHost(void* to, const void* from_host, size_t bytes,
                                    const CallOptions& options) = 0;
};

// Makes communicators of devices. Safe for concurrent use; must outlive what it made.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Connects this rank, with its device `device`, with its peers; every rank of the group must call
  // it, also one that has no such device or lacks the library.
  //   Unimplemented: some rank can't do it; the same on all ranks, and says which and why.
  //   Otherwise as Backend::Connect.
  virtual absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Connect(const GroupInfo& group,
                                                                      int device, KeyExchange& keys,
                                                                      const WaitBounds& bounds) = 0;

  // For the data of `device`, by way of the host: its operations are copies around those of `host`,
  // which must outlive it, and are not for the same time as those. Concerns no other rank.
  //   Unimplemented, InvalidArgument, Internal: the device can't be used.
  virtual absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Stage(int device,
                                                                    Communicator& host) = 0;
};

// Connects the devices of the ranks of `host`, directly if that can be on all of them, otherwise by
// way of `host`; all ranks in the same way, at the same point of their operations. Then
// `why_staged` tells why; else it is empty. With a group.tls only by way of `host`, if that goes
// over the network.
//   Unimplemented: some rank can't use its device at all; the same on all ranks. PermissionDenied:
//   a rank does not belong here.   Otherwise as `host`'s operations, which ask the ranks how it
//   went.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectDevices(DeviceBackend& backend,
                                                                   const GroupInfo& group,
                                                                   int device, Communicator& host,
                                                                   const WaitBounds& bounds,
                                                                   std::string* why_staged);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_DEVICE_COMMUNICATOR_H_
