#include "collectives/messages/host_memory.h"

#include <sys/uio.h>
#include <unistd.h>

namespace hvd::collectives::messages {

void MemoryCard::FillIn(const uint64_t* own_cookie) {
  process = getpid();
  address = reinterpret_cast<uint64_t>(own_cookie);
  cookie = *own_cookie;
}

bool HostMemory::Available() {
  if (!available_.has_value()) {
    uint64_t cookie = 0;
    const bool read = Read(card_.address, reinterpret_cast<char*>(&cookie), sizeof(cookie));
    available_ = read && cookie == card_.cookie;
  }
  return *available_;
}

// The kernel reads less than all at the end of what is mapped, and 2 GB at the most.
bool HostMemory::Read(uint64_t address, char* to, size_t bytes) {
  while (bytes > 0) {
    const iovec here = {to, bytes};
    const iovec there = {reinterpret_cast<void*>(address), bytes};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(card_.process), &here, 1, &there, 1, 0);
    if (got <= 0) return false;
    address += static_cast<uint64_t>(got);
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace hvd::collectives::messages
