#include "collectives/nccl/testing/fake_gpu.h"

#include "collectives/nccl/testing/fake_world.h"

namespace hvd::collectives::nccl {

FakeWorld& FakeWorld::Get() {
  static auto* const world = new FakeWorld;
  return *world;
}

void FakeWorld::Pump() {
  for (bool progress = true; progress;) {
    progress = false;
    for (CudaStream* stream : streams) {
      while (!stream->work.empty() && (stream->awaited || !faults.streams_are_lazy)) {
        FakeWork& work = stream->work.front();
        if (!work.started) {
          work.started = true;
          progress = true;
          if (work.start) work.start();
        }
        if (work.is_done && !work.is_done()) break;
        stream->work.pop_front();
        progress = true;
      }
      if (stream->work.empty()) stream->awaited = false;
    }
  }
}

const absl::StatusOr<GpuLibraries>& FakeGpu::Libraries() {
  static const auto* const libraries = new absl::StatusOr<GpuLibraries>(
      GpuLibraries{FakeNcclFunctions(), FakeCudaFunctions(), 22307, {}});
  return *libraries;
}

void FakeGpu::Set(const Faults& faults) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.faults = faults;
  world.calls.clear();
  world.copies = 0;
}

int FakeGpu::communicators() {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  return static_cast<int>(world.comms.size());
}

void FakeGpu::AwaitNothingLeft() {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  const auto nothing = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(world.mutex) {
    return world.comms.empty() && world.streams.empty();
  };
  world.mutex.Await(absl::Condition(&nothing));
}

size_t FakeGpu::pending() {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  size_t count = 0;
  for (const CudaStream* stream : world.streams) count += stream->work.size();
  return count;
}

size_t FakeGpu::pinned() {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  size_t bytes = 0;
  for (const auto& [memory, size] : world.pinned) bytes += size;
  return bytes;
}

int FakeGpu::calls(const char* function) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  return world.calls[function];
}

CudaEvent* FakeGpu::NewEvent() {
  static auto* const kept = new std::vector<std::unique_ptr<CudaEvent>>;
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  kept->push_back(std::make_unique<CudaEvent>());
  kept->back()->happened = false;
  return kept->back().get();
}

void FakeGpu::Happen(CudaEvent* event) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  event->happened = true;
  world.Pump();
}

}  // namespace hvd::collectives::nccl
