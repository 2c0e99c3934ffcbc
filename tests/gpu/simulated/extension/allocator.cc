#include "tests/gpu/simulated/extension/allocator.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/gpu/simulated/extension/device.h"

namespace simulated_gpu {
namespace {

constexpr size_t kUnit = 4096;
constexpr size_t kLargeUnit = size_t{2} << 20;

size_t RoundedUp(size_t bytes) {
  const size_t unit = bytes < kLargeUnit ? kUnit : kLargeUnit;
  return (bytes + unit - 1) / unit * unit;
}

struct Block {
  CudaAddress address = 0;
  size_t bytes = 0;
  c10::DeviceIndex device = 0;
  CudaStream* stream = nullptr;          // the one it was allocated on
  std::vector<c10::Stream> others = {};  // streams that use it as well
  std::vector<CudaEvent*> events = {};   // after whose work it is free
};

struct Statistics {
  size_t allocated = 0, most_allocated = 0, reserved = 0, most_reserved = 0;
};

class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex device = ChosenDevice();
    const c10::Device of(c10::DeviceType::CUDA, device);
    if (bytes == 0) return {nullptr, of};
    Enter(device);
    const std::lock_guard<std::mutex> lock(mutex_);
    CollectReleased();
    Block block = Take(device, HandleOf(ChosenStream(device)), RoundedUp(bytes));
    void* const address = reinterpret_cast<void*>(block.address);
    Statistics& statistics = statistics_[device];
    statistics.allocated += block.bytes;
    statistics.most_allocated = std::max(statistics.most_allocated, statistics.allocated);
    in_use_[address] = std::move(block);
    return {address, address, &Delete, of};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }

  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "the host can't copy a GPU's memory");
  }

  void Record(void* address, const c10::Stream& stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = in_use_.find(address);
    if (found == in_use_.end() || found->second.stream == HandleOf(stream)) return;
    found->second.others.push_back(stream);
  }

  // What is kept goes back to the driver.
  void Empty(c10::DeviceIndex device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    CollectReleased();
    FreeKept(device);
  }

  Statistics statistics(c10::DeviceIndex device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return statistics_[device];
  }
  void ResetPeaks(c10::DeviceIndex device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Statistics& statistics = statistics_[device];
    statistics.most_allocated = statistics.allocated;
    statistics.most_reserved = statistics.reserved;
  }

 private:
  static void Delete(void* address);

  void Release(void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = in_use_.find(address);
    if (found == in_use_.end()) return;
    Block block = std::move(found->second);
    in_use_.erase(found);
    statistics_[block.device].allocated -= block.bytes;
    for (const c10::Stream& other : block.others) {
      CudaEvent* event = nullptr;
      Enter(block.device);
      Check(cuEventCreate(&event, hvd::collectives::nccl::kCudaEventDisableTiming));
      Check(cuEventRecord(event, HandleOf(other)));
      block.events.push_back(event);
    }
    block.others.clear();
    if (block.events.empty()) {
      Keep(std::move(block));
    } else {
      released_.push_back(std::move(block));
    }
  }

  void CollectReleased() {
    const auto is_free = [](const Block& block) {
      return std::all_of(block.events.begin(), block.events.end(), [](CudaEvent* event) {
        return cuEventQuery(event) == CudaResult::kSuccess;
      });
    };
    const auto first = std::partition(released_.begin(), released_.end(),
                                      [&](const Block& block) { return !is_free(block); });
    for (auto block = first; block != released_.end(); ++block) {
      for (CudaEvent* event : block->events) cuEventDestroy_v2(event);
      block->events.clear();
      Keep(std::move(*block));
    }
    released_.erase(first, released_.end());
  }

  void Keep(Block block) {
    auto& kept = kept_[{block.device, block.stream}];
    kept.emplace(block.bytes, std::move(block));
  }

  Block Take(c10::DeviceIndex device, CudaStream* stream, size_t bytes) {
    auto& kept = kept_[{device, stream}];
    const auto found = kept.lower_bound(bytes);
    if (found != kept.end() && found->first <= 2 * bytes) {
      Block block = std::move(found->second);
      kept.erase(found);
      return block;
    }
    CudaAddress address = 0;
    CudaResult result = cuMemAlloc_v2(&address, bytes);
    if (result == CudaResult::kOutOfMemory) {
      FreeKept(device);
      result = cuMemAlloc_v2(&address, bytes);
    }
    if (result == CudaResult::kOutOfMemory) ThrowFull(device, bytes);
    Check(result);
    Statistics& statistics = statistics_[device];
    statistics.reserved += bytes;
    statistics.most_reserved = std::max(statistics.most_reserved, statistics.reserved);
    return {address, bytes, device, stream};
  }

  void FreeKept(c10::DeviceIndex device) {
    Enter(device);
    for (auto& [place, kept] : kept_) {
      if (place.first != device) continue;
      for (const auto& [bytes, block] : kept) {
        Check(cuMemFree_v2(block.address));
        statistics_[device].reserved -= bytes;
      }
      kept.clear();
    }
  }

  [[noreturn]] static void ThrowFull(c10::DeviceIndex device, size_t bytes) {
    size_t free = 0, total = 0;
    Check(cuMemGetInfo_v2(&free, &total));
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes >> 20,
                     " MiB. GPU ", static_cast<int>(device), " has a total capacity of ",
                     total >> 20, " MiB of which ", free >> 20, " MiB is free.");
  }

  std::mutex mutex_;
  std::map<void*, Block> in_use_;
  std::map<std::pair<c10::DeviceIndex, CudaStream*>, std::multimap<size_t, Block>> kept_;
  std::vector<Block> released_;  // that other streams may use still
  std::map<c10::DeviceIndex, Statistics> statistics_;
};

CachingAllocator& TheAllocator() {
  static auto* const allocator = new CachingAllocator;
  return *allocator;
}

void CachingAllocator::Delete(void* address) { TheAllocator().Release(address); }

// ---- Pinned memory.

struct Pinned {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<void>> blocks;

  static Pinned& Get() {
    static auto* const pinned = new Pinned;
    return *pinned;
  }
};

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::DeviceType::CPU};
    Enter(ChosenDevice());
    void* address = nullptr;
    Check(cuMemHostAlloc(&address, bytes, 0));
    Pinned& pinned = Pinned::Get();
    const std::lock_guard<std::mutex> lock(pinned.mutex);
    pinned.blocks[address] =
        std::shared_ptr<void>(address, [](void* released) { cuMemFreeHost(released); });
    return {address, address, &Delete, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void Delete(void* address) {
    Pinned& pinned = Pinned::Get();
    const std::lock_guard<std::mutex> lock(pinned.mutex);
    pinned.blocks.erase(address);
  }
};

}  // namespace

c10::Allocator* DeviceAllocator() { return &TheAllocator(); }

void RecordStream(const c10::DataPtr& data, const c10::Stream& stream) {
  TheAllocator().Record(data.get(), stream);
}

c10::Allocator* PinnedAllocator() {
  static auto* const allocator = new HostAllocator;
  return allocator;
}

std::shared_ptr<void> HoldPinned(const void* address) {
  Pinned& pinned = Pinned::Get();
  const std::lock_guard<std::mutex> lock(pinned.mutex);
  const auto found = pinned.blocks.find(address);
  return found == pinned.blocks.end() ? nullptr : found->second;
}

}  // namespace simulated_gpu

#pragma GCC visibility push(default)
extern "C" {

void simulated_gpu_empty_cache() {
  for (int device = 0; device < simulatedGpuCount(); ++device) {
    simulated_gpu::TheAllocator().Empty(static_cast<c10::DeviceIndex>(device));
  }
}

// allocated, most allocated, reserved, most reserved
void simulated_gpu_statistics(int device, size_t* values) {
  const auto statistics =
      simulated_gpu::TheAllocator().statistics(static_cast<c10::DeviceIndex>(device));
  values[0] = statistics.allocated;
  values[1] = statistics.most_allocated;
  values[2] = statistics.reserved;
  values[3] = statistics.most_reserved;
}

void simulated_gpu_reset_peaks(int device) {
  simulated_gpu::TheAllocator().ResetPeaks(static_cast<c10::DeviceIndex>(device));
}

// Returns whether it could be told.
int simulated_gpu_free_memory(int device, size_t* free, size_t* total) {
  try {
    simulated_gpu::Enter(static_cast<c10::DeviceIndex>(device));
  } catch (const c10::Error&) {
    return 0;
  }
  return cuMemGetInfo_v2(free, total) == CudaResult::kSuccess;
}
}
#pragma GCC visibility pop
