#include <cstdlib>
#include <cstring>

#include "collectives/nccl/testing/fake_world.h"

namespace hvd::collectives::nccl {
namespace {

constexpr CudaResult kInvalidValue = static_cast<CudaResult>(1);
constexpr int kDevices = 8;

// The number of contexts of the thread; the driver refuses work without one.
thread_local int contexts = 0;

CudaContext* AnyContext() {
  static char context;
  return reinterpret_cast<CudaContext*>(&context);
}

CudaResult Enqueue(CudaStream* stream, FakeWork work) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  if (contexts == 0 || world.streams.count(stream) == 0) return kInvalidValue;
  stream->work.push_back(std::move(work));
  world.Pump();
  return CudaResult::kSuccess;
}

CudaResult Copy(void* to, const void* from, size_t bytes, CudaStream* stream) {
  return Enqueue(stream, {[=] { std::memmove(to, from, bytes); }, nullptr});
}

CudaResult CopyOverBus(const char* function, void* to, const void* from, size_t bytes,
                       CudaStream* stream) {
  {
    FakeWorld& world = FakeWorld::Get();
    absl::MutexLock lock(&world.mutex);
    world.Count(function);
    if (++world.copies == world.faults.failing_copy) return kInvalidValue;
  }
  return Copy(to, from, bytes, stream);
}

void* Pointer(CudaAddress address) { return reinterpret_cast<void*>(address); }

CudaResult CreateStream(CudaStream** stream, unsigned flags) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  if (contexts == 0) return kInvalidValue;
  *stream = new CudaStream;
  world.streams.insert(*stream);
  return CudaResult::kSuccess;
}

CudaResult DestroyStream(CudaStream* stream) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  if (world.streams.erase(stream) == 0) return kInvalidValue;
  delete stream;
  return CudaResult::kSuccess;
}

CudaResult SynchronizeStream(CudaStream* stream) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  stream->awaited = true;
  world.Pump();
  const auto idle = [stream] { return stream->work.empty(); };
  world.mutex.Await(absl::Condition(&idle));
  return CudaResult::kSuccess;
}

CudaResult RecordEvent(CudaEvent* event, CudaStream* stream) {
  {
    absl::MutexLock lock(&FakeWorld::Get().mutex);
    event->happened = false;
    event->recorded_on = stream;
  }
  return Enqueue(stream, {[event] { event->happened = true; }, nullptr});
}

CudaResult WaitEvent(CudaStream* stream, CudaEvent* event, unsigned flags) {
  const auto start = [event] {
    if (!event->happened && event->recorded_on != nullptr) event->recorded_on->awaited = true;
  };
  return Enqueue(stream, {start, [event] { return event->happened; }});
}

CudaResult QueryEvent(CudaEvent* event) {
  absl::MutexLock lock(&FakeWorld::Get().mutex);
  return event->happened ? CudaResult::kSuccess : CudaResult::kNotReady;
}

CudaResult Allocate(CudaAddress* memory, size_t bytes) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("cuMemAlloc");
  if (contexts == 0) return kInvalidValue;
  if (world.faults.memory_is_full) return CudaResult::kOutOfMemory;
  *memory = reinterpret_cast<CudaAddress>(std::malloc(bytes));
  return CudaResult::kSuccess;
}

CudaResult Free(CudaAddress memory) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  world.Count("cuMemFree");
  if (contexts == 0) return kInvalidValue;
  world.faults.memory_is_full = false;
  std::free(Pointer(memory));
  return CudaResult::kSuccess;
}

CudaResult AllocateHost(void** memory, size_t bytes, unsigned flags) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  if (contexts == 0 || flags != 0) return kInvalidValue;
  if (world.faults.pinning_fails) return CudaResult::kOutOfMemory;
  *memory = std::malloc(bytes);
  world.pinned[*memory] = bytes;
  return CudaResult::kSuccess;
}

CudaResult FreeHost(void* memory) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  if (contexts == 0 || world.pinned.erase(memory) == 0) return kInvalidValue;
  std::free(memory);
  return CudaResult::kSuccess;
}

CudaResult RegisterHost(void* memory, size_t bytes, unsigned flags) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  if (contexts == 0 || flags != 0) return kInvalidValue;
  if (world.faults.registering_fails) return CudaResult::kOutOfMemory;
  world.pinned[memory] = bytes;
  return CudaResult::kSuccess;
}

CudaResult UnregisterHost(void* memory) {
  FakeWorld& world = FakeWorld::Get();
  absl::MutexLock lock(&world.mutex);
  return contexts > 0 && world.pinned.erase(memory) > 0 ? CudaResult::kSuccess : kInvalidValue;
}

CudaResult PopContext(CudaContext** context) {
  if (contexts == 0) return kInvalidValue;
  --contexts;
  *context = AnyContext();
  return CudaResult::kSuccess;
}

}  // namespace

CudaFunctions FakeCudaFunctions() {
  CudaFunctions f;
  f.init = [](unsigned) { return CudaResult::kSuccess; };
  f.get_error_string = [](CudaResult, const char** text) {
    *text = "a fake error";
    return CudaResult::kSuccess;
  };
  f.device_get_count = [](int* count) {
    *count = kDevices;
    return CudaResult::kSuccess;
  };
  f.device_get_uuid = [](CudaUuid* uuid, CudaDevice device) {
    *uuid = {};
    uuid->bytes[0] = static_cast<char>(device);
    return CudaResult::kSuccess;
  };
  f.primary_context_retain = [](CudaContext** context, CudaDevice) {
    *context = AnyContext();
    return CudaResult::kSuccess;
  };
  f.primary_context_release = [](CudaDevice) { return CudaResult::kSuccess; };
  f.context_push = [](CudaContext*) {
    ++contexts;
    return CudaResult::kSuccess;
  };
  f.context_pop = PopContext;
  f.context_get_device = [](CudaDevice* device) {
    *device = 0;
    return contexts > 0 ? CudaResult::kSuccess : kInvalidValue;
  };
  f.stream_create = CreateStream;
  f.stream_destroy = DestroyStream;
  f.stream_get_context = [](CudaStream*, CudaContext** context) {
    *context = AnyContext();
    return CudaResult::kSuccess;
  };
  f.stream_synchronize = SynchronizeStream;
  f.stream_wait_event = WaitEvent;
  f.event_create = [](CudaEvent** event, unsigned) {
    *event = new CudaEvent;
    return CudaResult::kSuccess;
  };
  f.event_destroy = [](CudaEvent* event) {
    delete event;
    return CudaResult::kSuccess;
  };
  f.event_record = RecordEvent;
  f.event_query = QueryEvent;
  f.pointer_get_attribute = [](void* value, CudaPointerAttribute, CudaAddress address) {
    if (address == 0) return kInvalidValue;
    *static_cast<int*>(value) = 0;
    return CudaResult::kSuccess;
  };
  f.memory_allocate = Allocate;
  f.memory_free = Free;
  f.host_allocate = AllocateHost;
  f.host_free = FreeHost;
  f.host_register = RegisterHost;
  f.host_unregister = UnregisterHost;
  f.copy_to_host = [](void* to, CudaAddress from, size_t bytes, CudaStream* stream) {
    return CopyOverBus("cuMemcpyDtoHAsync", to, Pointer(from), bytes, stream);
  };
  f.copy_from_host = [](CudaAddress to, const void* from, size_t bytes, CudaStream* stream) {
    return CopyOverBus("cuMemcpyHtoDAsync", Pointer(to), from, bytes, stream);
  };
  f.copy_on_device = [](CudaAddress to, CudaAddress from, size_t bytes, CudaStream* stream) {
    return Copy(Pointer(to), Pointer(from), bytes, stream);
  };
  return f;
}

}  // namespace hvd::collectives::nccl
