// The allocators of the simulated GPU's torch: of a GPU's memory, and of pinned memory of the host.
#ifndef TESTS_GPU_SIMULATED_EXTENSION_ALLOCATOR_H_
#define TESTS_GPU_SIMULATED_EXTENSION_ALLOCATOR_H_

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <memory>

namespace simulated_gpu {

// Keeps released memory, like torch's own: the next tensor of the stream may get it at once, while
// earlier work of the stream still uses it. So whoever uses memory on another stream without
// telling it sees it overwritten.
c10::Allocator* DeviceAllocator();
// The tensor's memory is not given to another before what `stream` does so far is done.
void RecordStream(const c10::DataPtr& data, const c10::Stream& stream);

c10::Allocator* PinnedAllocator();
// Keeps pinned memory of PinnedAllocator() for a copy that is under way, whatever becomes of its
// tensor. nullptr: it is none.
std::shared_ptr<void> HoldPinned(const void* address);

}  // namespace simulated_gpu

#endif  // TESTS_GPU_SIMULATED_EXTENSION_ALLOCATOR_H_
