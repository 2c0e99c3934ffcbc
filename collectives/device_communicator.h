// The interface of communicators for tensors in device memory.
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
// name says otherwise. A call returns when its result is complete, so that any other stream may
// read it. If the communicator breaks, a call returns when the device no longer accesses the
// buffers, or after a few seconds if the device can't be stopped.
class DeviceCommunicator : public Communicator {
 public:
  virtual int device() const = 0;

  // What makes this rank slower than it could be, with the reason, for its log; empty: nothing.
  virtual std::string Warning() const { return ""; }

  // All later calls access their buffers only after `event`, a recorded CUDA event, has happened.
  // The event may be destroyed at once.
  virtual absl::Status WaitFor(void* event) = 0;

  // AllReduce of several memory blocks at once, with every element multiplied by `factor`. All
  // ranks have the same counts, type, op and factor.
  // Errors:
  //   - Unimplemented: a factor other than 1 with an op other than kSum, or with integers.
  virtual absl::Status AllReduceScaled(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                                       double factor, const CallOptions& options) = 0;

  // ReduceScatter with every element multiplied by `factor`.
  // Errors:
  //   - Unimplemented: as in AllReduceScaled.
  virtual absl::Status ReduceScatterScaled(const void* in, void* out,
                                           absl::Span<const size_t> counts, DataType type,
                                           ReduceOp op, double factor,
                                           const CallOptions& options) = 0;

  // `bytes` of the device's memory with any content, valid until the next call.
  virtual absl::StatusOr<void*> Reserve(size_t bytes) = 0;
  // `bytes` of the device's memory with any content, freed with the last copy of the pointer, which
  // may outlive the communicator. The last copy may be destroyed on any thread, but not while an
  // operation uses the memory. nullptr for 0 bytes.
  // Errors:
  //   - ResourceExhausted: the device is full; on this rank alone.
  virtual absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) = 0;

  // Copies on the device, and between it and the host.
  virtual absl::Status CopyOnDevice(void* to, const void* from, size_t bytes,
                                    const CallOptions& options) = 0;
  virtual absl::Status CopyToHost(void* to_host, const void* from, size_t bytes,
                                  const CallOptions& options) = 0;
  virtual absl::Status CopyFromHost(void* to, const void* from_host, size_t bytes,
                                    const CallOptions& options) = 0;
};

// Makes communicators of devices. Safe for concurrent use; must outlive them.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // Connects this rank, with its device `device`, with its peers. Every rank of the group must call
  // it, even one without such a device or without the library.
  // Errors:
  //   - Unimplemented: a rank can't take part; the same on all ranks. The message names that rank
  //     and the reason.
  //   - Others: those of Backend::Connect.
  virtual absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Connect(const GroupInfo& group,
                                                                      int device, KeyExchange& keys,
                                                                      const WaitBounds& bounds) = 0;

  // A communicator for the data of `device` that copies it through host memory: each of its
  // operations is one or more of `host`, between two copies each. `host` must outlive it, and the
  // operations of the two must not overlap. The call is local: it does not communicate with other
  // ranks. Errors:
  //   - Unimplemented, InvalidArgument, Internal: the device can't be used.
  virtual absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Stage(int device,
                                                                    Communicator& host) = 0;
};

// Connects the devices of the ranks of `host`: directly if all ranks can do that, otherwise through
// host memory and `host` (staging). All ranks get the same kind, and must call it at the same point
// in their sequence of operations. `why_staged` gets the reason for staging; empty: not staged. A
// group with TLS is always staged unless `host` stays within one machine, since NCCL does not
// encrypt.
// Errors:
//   - Unimplemented: a rank can't use its device at all; the same on all ranks.
//   - PermissionDenied: a rank does not belong to the group.
//   - Others: those of the operations of `host`, in which the ranks compare their results.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectDevices(DeviceBackend& backend,
                                                                   const GroupInfo& group,
                                                                   int device, Communicator& host,
                                                                   const WaitBounds& bounds,
                                                                   std::string* why_staged);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_DEVICE_COMMUNICATOR_H_
