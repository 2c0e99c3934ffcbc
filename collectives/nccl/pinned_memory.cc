#include "collectives/nccl/pinned_memory.h"

namespace hvd::collectives::nccl {

PinnedMemory::PinnedMemory(DeviceStream& stream, size_t bytes) : stream_(stream) {
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

PinnedMemory::~PinnedMemory() {
  if (pageable_ != nullptr) return;
  const DeviceStream::ScopedDevice device(stream_);
  stream_.FreeHost(data_);
}

}  // namespace hvd::collectives::nccl
