#include "worker_runtime/engine/engine_test_util.h"

#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "base/status_macros.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/shm/shm_backend.h"
#include "gtest/gtest.h"
#include "worker_runtime/control/mail_control_channel.h"

namespace hvd::worker_runtime::engine {
namespace {

constexpr char kAddress[] = "127.0.0.1";
constexpr absl::Duration kConnectTimeout = absl::Seconds(60);

bool InSharedMemory() {
  const char* const world = getenv("TEST_WORLD");
  return world != nullptr && std::string(world) == "shm";
}

}  // namespace

void InThreads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(f, i);
  for (std::thread& thread : threads) thread.join();
}

TestWorld::TestWorld(int size, const EngineOptions& options, int bare_rank,
                     collectives::DeviceBackend* devices)
    : backend_(InSharedMemory() ? collectives::shm::MakeShmBackend()
                                : collectives::inproc::MakeInprocBackend()),
      root_(*collectives::peer::PeerPort::Open(kAddress)),
      keys_(size),
      ranks_(size) {
  InThreads(size, [this](int rank) { Connect(rank); });
  for (int rank = 0; rank < size; ++rank) {
    if (rank != bare_rank) Start(rank, options, devices);
  }
}

TestWorld::~TestWorld() {
  OnEach([](int, Engine& engine) { engine.Shutdown(); });
  for (Rank& rank : ranks_) rank.engine.reset();
}

collectives::GroupInfo TestWorld::GroupOf(int rank) const {
  return {Epoch(1), rank, size(), kAddress, "the epoch's secret"};
}

void TestWorld::Start(int rank, EngineOptions options, collectives::DeviceBackend* devices) {
  Rank& parts = ranks_[rank];
  if (devices != nullptr) {
    options.connect_devices = [this, rank, devices](int device, const WaitBounds& bounds) {
      std::string why_staged;
      return collectives::ConnectDevices(*devices, GroupOf(rank), device,
                                         *ranks_[rank].communicator, bounds, &why_staged);
    };
  }
  parts.engine = Engine::Start(options, *parts.communicator, std::move(parts.channel));
}

void TestWorld::Connect(int rank) {
  collectives::GroupInfo group = GroupOf(rank);
  auto communicator = backend_->Connect(group, *keys_.ForRank(rank), kConnectTimeout);
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  ranks_[rank].communicator = *std::move(communicator);
  if (collectives::Mailbox* const mailbox = ranks_[rank].communicator->mailbox()) {
    ranks_[rank].channel = control::MakeMailControlChannel(*mailbox, rank, size());
    return;
  }
  if (rank == 0) group.port = root_;
  auto channel =
      control::ControlChannel::Connect(group, kAddress, root_->number(), kConnectTimeout);
  ASSERT_TRUE(channel.ok()) << channel.status();
  ranks_[rank].channel = *std::move(channel);
}

void TestWorld::OnEach(const std::function<void(int, Engine&)>& f) {
  InThreads(size(), [&](int rank) {
    if (ranks_[rank].engine != nullptr) f(rank, *ranks_[rank].engine);
  });
}

void TestWorld::Kill(int bare_rank) {
  ranks_[bare_rank].channel.reset();
  ranks_[bare_rank].communicator.reset();
}

absl::Status RunOn(Engine& engine, std::vector<TensorRequest> requests) {
  ASSIGN_OR_RETURN(const Engine::Handle handle, engine.Submit(std::move(requests)));
  return engine.Wait(handle);
}

absl::Status RunAtOnce(Engine& engine, TensorRequest request) {
  std::vector<negotiation::SignaturePtr> signatures;
  std::vector<TensorMemory> memory;
  SplitRequests({std::move(request)}, signatures, memory);
  ASSIGN_OR_RETURN(const Engine::Handle handle, engine.Submit(signatures, memory, /*waits=*/true));
  return engine.Wait(handle);
}

absl::Status SubmitThen(Engine& engine, TensorRequest request,
                        std::function<void(Engine::Handle)> then) {
  std::vector<negotiation::SignaturePtr> signatures;
  std::vector<TensorMemory> memory;
  SplitRequests({std::move(request)}, signatures, memory);
  return engine.SubmitThen(std::move(signatures), std::move(memory), std::move(then));
}

absl::Status RunAndCheck(Engine& engine, std::vector<TensorRequest> requests,
                         const std::function<void(const std::vector<TensorResult>&)>& check) {
  ASSIGN_OR_RETURN(const Engine::Handle handle, engine.Submit(std::move(requests)));
  RETURN_IF_ERROR(engine.Wait(handle));
  check(handle->results);
  return absl::OkStatus();
}

}  // namespace hvd::worker_runtime::engine
