#include "collectives/conformance/forked_key_exchange.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace hvd::collectives::conformance {

struct ForkedKeyExchange::Shared {
  alignas(64) pthread_barrier_t barrier;
};

struct ForkedKeyExchange::Slot {
  size_t length;
  char bytes[16384];
};

ForkedKeyExchange::ForkedKeyExchange(int size) : size_(size) {
  void* const memory =
      mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  shared_ = static_cast<Shared*>(memory);
  slots_ = reinterpret_cast<Slot*>(shared_ + 1);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared_->barrier, &attributes, size);
}

// Other processes may still use the barrier.
ForkedKeyExchange::~ForkedKeyExchange() { munmap(shared_, bytes()); }

size_t ForkedKeyExchange::bytes() const { return sizeof(Shared) + size_ * sizeof(Slot); }

absl::StatusOr<std::vector<std::string>> ForkedKeyExchange::AllGather(absl::string_view,
                                                                      absl::string_view value,
                                                                      absl::Duration) {
  if (value.size() > sizeof(Slot::bytes)) return absl::InternalError("a long value");
  slots_[rank_].length = value.size();
  std::memcpy(slots_[rank_].bytes, value.data(), value.size());
  // The first barrier: all values are written. The second one: all have been read, so that the next
  // exchange may overwrite them.
  pthread_barrier_wait(&shared_->barrier);
  std::vector<std::string> all;
  for (int i = 0; i < size_; ++i) all.emplace_back(slots_[i].bytes, slots_[i].length);
  pthread_barrier_wait(&shared_->barrier);
  return all;
}

}  // namespace hvd::collectives::conformance
