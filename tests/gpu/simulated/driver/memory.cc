#include "tests/gpu/simulated/driver/memory.h"

#include <sys/mman.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/gpu/simulated/driver/account.h"
#include "tests/gpu/simulated/driver/settings.h"

namespace simulated_gpu {
namespace {

using hvd::collectives::nccl::CudaAddress;
using hvd::collectives::nccl::CudaResult;

constexpr size_t kPage = 4096;

struct Block {
  size_t bytes;
  char* place;  // where the bytes are
  int device;   // -1: pinned memory of the host
  bool is_callers;
};

struct Blocks {
  std::mutex mutex;
  std::map<const char*, Block> by_address;
};

Blocks& AllBlocks() {
  static auto* const blocks = new Blocks;
  return *blocks;
}

Account& AccountOf(int device) {
  static auto* const accounts = [] {
    auto* const made = new std::vector<std::unique_ptr<Account>>;
    const Settings& settings = TheSettings();
    for (const int number : settings.devices) {
      made->push_back(std::make_unique<Account>(
          settings.state.empty() ? "" : settings.state + "/memory-" + std::to_string(number),
          settings.memory));
    }
    return made;
  }();
  return *accounts->at(device);
}

size_t Rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

char* Map(size_t bytes, int protection) {
  void* const place =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return place == MAP_FAILED ? nullptr : static_cast<char*>(place);
}

void Insert(const char* address, const Block& block) {
  Blocks& blocks = AllBlocks();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  blocks.by_address[address] = block;
}

// Removes the block that begins at `address`, if it is of the kind. bytes is 0 if there is none.
Block Remove(const void* address, bool on_device, bool is_callers) {
  Blocks& blocks = AllBlocks();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  const auto found = blocks.by_address.find(static_cast<const char*>(address));
  if (found == blocks.by_address.end()) return {};
  const Block block = found->second;
  if ((block.device >= 0) != on_device || block.is_callers != is_callers) return {};
  blocks.by_address.erase(found);
  return block;
}

struct Found {
  Block block = {};
  size_t offset = 0;
};

// The block around `address`.
Found Find(const void* address) {
  Blocks& blocks = AllBlocks();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  const auto* const wanted = static_cast<const char*>(address);
  auto next = blocks.by_address.upper_bound(wanted);
  if (next == blocks.by_address.begin()) return {};
  --next;
  const size_t offset = wanted - next->first;
  if (offset >= next->second.bytes) return {};
  return {next->second, offset};
}

}  // namespace

CudaResult AllocateOnDevice(int device, size_t bytes, CudaAddress* address) {
  if (bytes == 0) return static_cast<CudaResult>(1);
  bytes = Rounded(bytes);
  if (!AccountOf(device).Take(bytes)) return CudaResult::kOutOfMemory;
  char* const place = Map(bytes, PROT_READ | PROT_WRITE);
  char* const known_as = Map(bytes, PROT_NONE);
  if (place == nullptr || known_as == nullptr) {
    AccountOf(device).GiveBack(bytes);
    return CudaResult::kOutOfMemory;
  }
  Insert(known_as, {bytes, place, device, false});
  *address = reinterpret_cast<CudaAddress>(known_as);
  return CudaResult::kSuccess;
}

int FreeOnDevice(CudaAddress address) {
  void* const known_as = reinterpret_cast<void*>(address);
  const Block block = Remove(known_as, /*on_device=*/true, /*is_callers=*/false);
  if (block.bytes == 0) return -1;
  munmap(block.place, block.bytes);
  munmap(known_as, block.bytes);
  AccountOf(block.device).GiveBack(block.bytes);
  return block.device;
}

void* AllocatePinned(size_t bytes) {
  bytes = Rounded(bytes);
  char* const place = Map(bytes, PROT_READ | PROT_WRITE);
  if (place != nullptr) Insert(place, {bytes, place, -1, false});
  return place;
}

bool FreePinned(void* address) {
  const Block block = Remove(address, /*on_device=*/false, /*is_callers=*/false);
  if (block.bytes == 0) return false;
  munmap(block.place, block.bytes);
  return true;
}

bool Pin(void* address, size_t bytes) {
  if (bytes == 0 || IsPinned(address)) return false;
  Insert(static_cast<char*>(address), {bytes, static_cast<char*>(address), -1, true});
  return true;
}

bool Unpin(void* address) {
  return Remove(address, /*on_device=*/false, /*is_callers=*/true).bytes != 0;
}

bool IsPinned(const void* address) {
  const Found found = Find(address);
  return found.block.bytes != 0 && found.block.device < 0;
}

void* WhereKernelsFind(const void* address, size_t bytes) {
  const Found found = Find(address);
  if (bytes > found.block.bytes - found.offset || found.block.bytes == 0) return nullptr;
  return found.block.place + found.offset;
}

int DeviceOf(const void* address) {
  const Found found = Find(address);
  return found.block.bytes == 0 ? -1 : found.block.device;
}

size_t FreeMemory(int device) { return AccountOf(device).Free(); }
size_t TotalMemory(int device) { return AccountOf(device).total(); }

}  // namespace simulated_gpu
