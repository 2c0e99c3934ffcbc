#include "collectives/messages/fork_mark.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>

namespace hvd::collectives::messages {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

ForkMark::ForkMark() : process_(getpid()) {
  void* const page =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, kPage, MADV_WIPEONFORK) == 0) {
    mark_ = new (page) std::atomic<bool>(true);
  } else {
    munmap(page, kPage);
  }
}

ForkMark::~ForkMark() {
  if (mark_ != nullptr) munmap(mark_, kPage);
}

bool ForkMark::IsOwnProcess() const {
  return mark_ != nullptr ? mark_->load(std::memory_order_relaxed) : getpid() == process_;
}

}  // namespace hvd::collectives::messages
