// The interface for tensors in device memory: a Communicator whose buffers are on a device.
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
// read it. If the communicator breaks, a call returns when the device no longer accesses its
// buffers, or after a few seconds if that can't be reached.
class DeviceCommunicator : public Communicator {
 public:
  virtual int device() const = 0;

  // All later calls access their buffers only after `event`, a recorded CUDA event, has happened.
  // The event may be destroyed at once.
  virtual absl::Status WaitFor(void* event) = 0;

  // AllReduce of several memory blocks at once, of `factor` times their elements. All ranks have
  // the same counts, type, op and factor.
  // Errors:
  //   - Unimplemented: a factor other than 1 with an op other than kSum, or with integers.
  virtual absl::Status AllReduceScaled(absl::Span<const Piece> pieces, DataType type, ReduceOp op,
                                       double factor, const CallOptions& options) = 0;

  // ReduceScatter of `factor` times the elements; otherwise like AllReduceScaled.
  virtual absl::Status ReduceScatterScaled(const void* in, void* out,
                                           absl::Span<const size_t> counts, DataType type,
                                           ReduceOp op, double factor,
                                           const CallOptions& options) = 0;

  // `bytes` of the device's memory with any content, valid until the next call.
  virtual absl::StatusOr<void*> Reserve(size_t bytes) = 0;
  // The same, valid as long as there are copies of the pointer, which may outlive the communicator.
  // When the last copy is destroyed, on any thread, no operation may be using the memory. nullptr
  // for 0 bytes.
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

  // Connects this rank, with its device `device`, with its peers; every rank of the group must call
  // it, also one that has no such device or lacks the library.
  // Errors:
  //   - Unimplemented: some rank can't do it; the same on all ranks, and names it and the reason.
  //   - Others: those of Backend::Connect.
  virtual absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Connect(const GroupInfo& group,
                                                                      int device, KeyExchange& keys,
                                                                      const WaitBounds& bounds) = 0;

  // A communicator for the data of `device`, by way of the host. Its operations are copies around
  // those of `host`, which must outlive it, and must not run at the same time as those. Local: no
  // other rank is involved.
  // Errors:
  //   - Unimplemented, InvalidArgument, Internal: the device can't be used.
  virtual absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Stage(int device,
                                                                    Communicator& host) = 0;
};

// Connects the devices of the ranks of `host`, directly if that is possible on all of them,
// otherwise by way of `host`; all ranks in the same way, at the same point of their operations.
// `why_staged` gets the reason for the latter, or is empty. With a group.tls only by way of `host`,
// if that uses the network.
// Errors:
//   - Unimplemented: some rank can't use its device at all; the same on all ranks.
//   - PermissionDenied: a rank does not belong to the group.
//   - Others: those of the operations of `host`, in which the ranks compare their results.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectDevices(DeviceBackend& backend,
                                                                   const GroupInfo& group,
                                                                   int device, Communicator& host,
                                                                   const WaitBounds& bounds,
                                                                   std::string* why_staged);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_DEVICE_COMMUNICATOR_H_
