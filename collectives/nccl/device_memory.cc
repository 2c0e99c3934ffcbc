#include "collectives/nccl/device_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/nccl/convert.h"
#include "collectives/nccl/library.h"

namespace hvd::collectives::nccl {
namespace {

// Sizes are rounded up to the driver's granularity, so that results of similar sizes can reuse the
// same memory.
constexpr size_t kUnit = size_t{2} << 20;
// The number of unused blocks that are kept. Consecutive operations need no more, and the framework
// needs the rest of the memory.
constexpr size_t kMostKept = 2;

size_t RoundedUp(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

}  // namespace

absl::StatusOr<std::shared_ptr<DeviceMemory>> DeviceMemory::Create(const CudaFunctions& cuda,
                                                                   int device) {
  CudaContext* context = nullptr;
  RETURN_IF_ERROR(FromCuda(cuda, cuda.primary_context_retain(&context, device),
                           absl::StrCat("opening CUDA device ", device)));
  return std::shared_ptr<DeviceMemory>(new DeviceMemory(cuda, device, context));
}

DeviceMemory::~DeviceMemory() {
  {
    absl::MutexLock lock(&mutex_);
    FreeAllBut(0);
  }
  cuda_.primary_context_release(device_);
}

// Uses the smallest unused block that is large enough. Surplus blocks are freed here, on a thread
// that may block, because GiveBack must not.
absl::StatusOr<std::shared_ptr<void>> DeviceMemory::Take(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  CudaAddress address = 0;
  const auto found = unused_.lower_bound(bytes);
  if (found != unused_.end()) {
    bytes = found->first;
    address = found->second;
    unused_.erase(found);
  } else {
    bytes = RoundedUp(bytes);
    ASSIGN_OR_RETURN(address, Allocate(bytes));
  }
  FreeAllBut(kMostKept);
  return std::shared_ptr<void>(
      reinterpret_cast<void*>(address),
      [self = shared_from_this(), address, bytes](void*) { self->GiveBack(address, bytes); });
}

absl::StatusOr<CudaAddress> DeviceMemory::Allocate(size_t bytes) {
  const ScopedContext scope(cuda_, context_);
  CudaAddress address = 0;
  CudaResult result = cuda_.memory_allocate(&address, bytes);
  // What the pool keeps may be what is missing.
  if (result == CudaResult::kOutOfMemory && !unused_.empty()) {
    FreeAllBut(0);
    result = cuda_.memory_allocate(&address, bytes);
  }
  RETURN_IF_ERROR(FromCuda(
      cuda_, result,
      absl::StrCat("taking ", bytes, " bytes of memory for a result on CUDA device ", device_)));
  return address;
}

// Frees the smallest blocks first.
void DeviceMemory::FreeAllBut(size_t count) {
  if (unused_.size() <= count) return;
  const ScopedContext scope(cuda_, context_);
  while (unused_.size() > count) {
    cuda_.memory_free(unused_.begin()->second);
    unused_.erase(unused_.begin());
  }
}

// Never frees memory: the driver would wait for the device, which may hang.
void DeviceMemory::GiveBack(CudaAddress address, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  unused_.emplace(bytes, address);
}

}  // namespace hvd::collectives::nccl
