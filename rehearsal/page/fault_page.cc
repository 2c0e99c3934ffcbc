#include "rehearsal/page/fault_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"

namespace hvd::rehearsal::page {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::StatusOr<void*> MapMemory(int fd) {
  void* const memory = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "can't map the page of faults");
  return memory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FaultPage>> FaultPage::Create() {
  Fd fd(memfd_create("hvd-faults", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), kPageBytes) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::ErrnoToStatus(errno, "no memory for the page of faults");
  }
  ASSIGN_OR_RETURN(void* const memory, MapMemory(fd.get()));
  return absl::WrapUnique(new FaultPage(std::move(fd), memory));
}

absl::StatusOr<std::unique_ptr<FaultPage>> FaultPage::Map(Fd fd) {
  struct stat info = {};
  const bool is_page = fstat(fd.get(), &info) == 0 && info.st_size == kPageBytes &&
                       (fcntl(fd.get(), F_GET_SEALS) & kSeals) == kSeals;
  if (!is_page) return absl::InvalidArgumentError("this is no page of faults");
  ASSIGN_OR_RETURN(void* const memory, MapMemory(fd.get()));
  return absl::WrapUnique(new FaultPage(std::move(fd), memory));
}

FaultPage::~FaultPage() { munmap(content_, kPageBytes); }

void FaultPage::Give(Order order, absl::Duration delay) {
  content_->delay_ms = static_cast<uint32_t>(absl::ToInt64Milliseconds(delay));
  content_->done = 0;
  content_->order.store(static_cast<uint32_t>(order), std::memory_order_release);
}

void FaultPage::Withdraw() { content_->order = static_cast<uint32_t>(Order::kNone); }

bool FaultPage::done() const { return content_->done != 0; }

bool FaultPage::Orders(Order order) const {
  return content_->order.load(std::memory_order_acquire) == static_cast<uint32_t>(order);
}

absl::Duration FaultPage::delay() const {
  return absl::Milliseconds(content_->delay_ms.load(std::memory_order_relaxed));
}

void FaultPage::NoteDone() { content_->done = 1; }

bool FaultPage::Take(Order order) {
  auto expected = static_cast<uint32_t>(order);
  if (!content_->order.compare_exchange_strong(expected, static_cast<uint32_t>(Order::kNone))) {
    return false;
  }
  content_->done = 1;
  return true;
}

}  // namespace hvd::rehearsal::page
