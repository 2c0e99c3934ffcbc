#include "tests/gpu/simulated/driver/handles.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <utility>

#include "tests/gpu/simulated/driver/settings.h"

namespace simulated_gpu {
namespace {

// Never destroyed: streams work until the process is gone.
struct Objects {
  std::atomic<pid_t> initialized_in{0};
  std::atomic<CudaResult> poison{CudaResult::kSuccess};
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Stream>> streams;
  std::map<int, std::shared_ptr<Stream>> default_streams;
  std::map<void*, std::shared_ptr<Event>> events;
};

Objects& All() {
  static auto* const objects = new Objects;
  return *objects;
}

int DeviceCount() { return static_cast<int>(TheSettings().devices.size()); }

// The addresses are the contexts' handles.
char contexts[64];

std::shared_ptr<Stream> DefaultStream(int device) {
  if (device < 0) return nullptr;
  Objects& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::shared_ptr<Stream>& stream = all.default_streams[device];
  if (stream == nullptr) stream = Stream::Start(device);
  return stream;
}

}  // namespace

CudaResult Initialize() {
  if (DeviceCount() == 0) return static_cast<CudaResult>(100);
  pid_t none = 0;
  All().initialized_in.compare_exchange_strong(none, getpid());
  return State();
}

CudaResult State() {
  const Objects& all = All();
  if (all.initialized_in != getpid()) return kNotInitialized;
  return all.poison;
}

void Poison(CudaResult why) {
  CudaResult none = CudaResult::kSuccess;
  All().poison.compare_exchange_strong(none, why);
}

CudaContext* ContextOf(int device) { return reinterpret_cast<CudaContext*>(&contexts[device]); }

int DeviceOfContext(CudaContext* context) {
  const auto device = reinterpret_cast<char*>(context) - contexts;
  return context != nullptr && device >= 0 && device < DeviceCount() ? static_cast<int>(device)
                                                                     : -1;
}

std::vector<CudaContext*>& ContextStack() {
  static thread_local std::vector<CudaContext*> stack;
  return stack;
}

int CurrentDevice() { return ContextStack().empty() ? -1 : DeviceOfContext(ContextStack().back()); }

CudaStream* MakeStream(int device) {
  std::shared_ptr<Stream> stream = Stream::Start(device);
  auto* const handle = reinterpret_cast<CudaStream*>(stream.get());
  Objects& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.streams[handle] = std::move(stream);
  return handle;
}

std::shared_ptr<Stream> FindStream(CudaStream* handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return DefaultStream(CurrentDevice());
  Objects& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.streams.find(handle);
  return found == all.streams.end() ? nullptr : found->second;
}

bool ReleaseStream(CudaStream* handle) {
  Objects& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.streams.find(handle);
  if (found == all.streams.end()) return false;
  found->second->Release();
  all.streams.erase(found);
  return true;
}

void SynchronizeDevice(int device) {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    Objects& all = All();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const auto& [handle, stream] : all.streams) streams.push_back(stream);
    for (const auto& [number, stream] : all.default_streams) streams.push_back(stream);
  }
  for (const std::shared_ptr<Stream>& stream : streams) {
    if (stream->device() == device) stream->Synchronize();
  }
}

CudaEvent* MakeEvent(int device, bool has_time) {
  std::shared_ptr<Event> event(new Event{device, has_time, {}, {}});
  auto* const handle = reinterpret_cast<CudaEvent*>(event.get());
  Objects& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.events[handle] = std::move(event);
  return handle;
}

std::shared_ptr<Event> FindEvent(CudaEvent* handle) {
  Objects& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.events.find(handle);
  return found == all.events.end() ? nullptr : found->second;
}

bool ReleaseEvent(CudaEvent* handle) {
  Objects& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.events.erase(handle) > 0;
}

}  // namespace simulated_gpu
