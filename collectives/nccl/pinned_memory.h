// Host memory for a device's copies, page-locked if the driver can do that.
#ifndef COLLECTIVES_NCCL_PINNED_MEMORY_H_
#define COLLECTIVES_NCCL_PINNED_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/nccl/device_stream.h"

namespace hvd::collectives::nccl {

// RAII. The content is undefined at first.
class PinnedMemory {
 public:
  // `stream` is any stream of the device, and must outlive the memory.
  PinnedMemory(DeviceStream& stream, size_t bytes) : stream_(stream) {
    const DeviceStream::ScopedDevice device(stream_);
    const absl::StatusOr<void*> pinned = stream_.AllocateHost(bytes);
    status_ = pinned.status();
    if (pinned.ok()) {
      data_ = static_cast<char*>(*pinned);
    } else {
      // Not make_unique, which would clear the memory, and so touch every page.
      pageable_.reset(new char[bytes]);
      data_ = pageable_.get();
    }
  }
  // REQUIRES: no copy uses the memory.
  ~PinnedMemory() {
    if (pageable_ != nullptr) return;
    const DeviceStream::ScopedDevice device(stream_);
    stream_.FreeHost(data_);
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  char* data() const { return data_; }
  // Why the memory is pageable instead; OK: it is page-locked. Pageable memory serves the same
  // calls, but the driver copies through a buffer of its own, and each call waits for its copy.
  const absl::Status& status() const { return status_; }

 private:
  DeviceStream& stream_;
  absl::Status status_;
  std::unique_ptr<char[]> pageable_;
  char* data_ = nullptr;
};

}  // namespace hvd::collectives::nccl

#endif  // COLLECTIVES_NCCL_PINNED_MEMORY_H_
