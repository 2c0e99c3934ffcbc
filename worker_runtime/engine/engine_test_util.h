// A test world of engines in one process: ranks are threads, control connections are real sockets,
// and collectives move data in memory. With TEST_WORLD=shm in the environment both use shared
// memory.
#ifndef WORKER_RUNTIME_ENGINE_ENGINE_TEST_UTIL_H_
#define WORKER_RUNTIME_ENGINE_ENGINE_TEST_UTIL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/backend.h"
#include "collectives/communicator.h"
#include "collectives/conformance/memory_key_exchange.h"
#include "collectives/device_communicator.h"
#include "collectives/peer/peer_port.h"
#include "worker_runtime/control/control_channel.h"
#include "worker_runtime/engine/engine.h"

namespace hvd::worker_runtime::engine {

// Calls f(0), ..., f(count - 1), each in a separate thread, and waits for all.
void InThreads(int count, const std::function<void(int)>& f);

class TestWorld {
 public:
  // Starts an engine on every rank except `bare_rank`, which gets only its connections. `devices`
  // connects the ranks' devices; nullptr: they have none.
  explicit TestWorld(int size, const EngineOptions& options = {}, int bare_rank = -1,
                     collectives::DeviceBackend* devices = nullptr);
  ~TestWorld();

  int size() const { return static_cast<int>(ranks_.size()); }
  Engine& engine(int rank) { return *ranks_[rank].engine; }
  control::ControlChannel& channel(int bare_rank) { return *ranks_[bare_rank].channel; }

  // Calls f for every rank that has an engine, each in a separate thread.
  void OnEach(const std::function<void(int rank, Engine& engine)>& f);

  // Simulates the death of a rank's process: closes its connections. REQUIRES: a bare rank.
  void Kill(int bare_rank);

 private:
  struct Rank {
    std::unique_ptr<collectives::Communicator> communicator;
    std::unique_ptr<control::ControlChannel> channel;  // until the engine takes it
    std::unique_ptr<Engine> engine;
  };
  collectives::GroupInfo GroupOf(int rank) const;
  void Connect(int rank);
  void Start(int rank, EngineOptions options, collectives::DeviceBackend* devices);

  const std::unique_ptr<collectives::Backend> backend_;
  const std::shared_ptr<collectives::peer::PeerPort> root_;
  collectives::conformance::KeyExchangeTable keys_;
  std::vector<Rank> ranks_;
};

// An all-reduce in place.
template <typename T>
TensorRequest AllReduceOf(const std::string& name, std::vector<T>& data, collectives::DataType type,
                          negotiation::Reduction reduction = negotiation::Reduction::kSum) {
  TensorRequest request;
  request.name = name;
  request.type = type;
  request.shape = {static_cast<int64_t>(data.size())};
  request.input = request.output = data.data();
  request.reduction = reduction;
  return request;
}
inline TensorRequest AllReduceOf(const std::string& name, std::vector<float>& data,
                                 negotiation::Reduction reduction = negotiation::Reduction::kSum) {
  return AllReduceOf(name, data, collectives::DataType::kFloat32, reduction);
}

// A request that carries no data.
inline TensorRequest Bare(const std::string& name, negotiation::OpKind op) {
  TensorRequest request;
  request.name = name;
  request.op = op;
  return request;
}

// Submit and Wait; returns the error of either.
absl::Status RunOn(Engine& engine, std::vector<TensorRequest> requests);

// Runs one request like RunOn, with `waits`: the caller runs the engine's rounds.
absl::Status RunAtOnce(Engine& engine, TensorRequest request);

absl::Status SubmitThen(Engine& engine, TensorRequest request,
                        std::function<void(Engine::Handle)> then);

// RunOn; then calls `check` with the results.
absl::Status RunAndCheck(Engine& engine, std::vector<TensorRequest> requests,
                         const std::function<void(const std::vector<TensorResult>&)>& check);

}  // namespace hvd::worker_runtime::engine

#endif  // WORKER_RUNTIME_ENGINE_ENGINE_TEST_UTIL_H_
