// The ranks of a world, or of a process set in it, connected: data plane, control channel (in
// shared memory if the data plane is, else TCP), and the engine that works on both.
#ifndef WORKER_RUNTIME_API_CONNECTED_GROUP_H_
#define WORKER_RUNTIME_API_CONNECTED_GROUP_H_

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/cancellation.h"
#include "collectives/backend.h"
#include "collectives/device_communicator.h"
#include "collectives/key_exchange.h"
#include "worker_runtime/control/control_channel.h"
#include "worker_runtime/engine/engine.h"

namespace hvd::worker_runtime::api {

// Where rank 0 takes control connections.
struct ControlRoot {
  std::string address;
  int port = 0;
};

// Connect and Start belong to one thread; then thread-safe.
class ConnectedGroup {
 public:
  // Every rank of the group must call it. Errors as Backend::Connect and ControlChannel::Connect.
  static absl::StatusOr<std::unique_ptr<ConnectedGroup>> Connect(
      const collectives::GroupInfo& group, collectives::Backend& backend,
      collectives::KeyExchange& keys, control::ControlListener& listener, const ControlRoot& root,
      const WaitBounds& bounds);
  ~ConnectedGroup() { Shutdown(); }

  // Puts the engine to work, on tensors of `devices`, too; nullptr: there are none. Call it once.
  void Start(const engine::EngineOptions& options,
             std::shared_ptr<collectives::DeviceBackend> devices);

  // REQUIRES: Start. Who holds it after the group's end has the results of its handles.
  const std::shared_ptr<engine::Engine>& engine() const { return engine_; }

  // Leaves in good order. No thread and no descriptor is there any more. Idempotent.
  void Shutdown();

 private:
  explicit ConnectedGroup(const collectives::GroupInfo& group) : group_(group) {}

  const collectives::GroupInfo group_;
  const pid_t process_ = getpid();
  std::unique_ptr<collectives::Communicator> communicator_;
  std::unique_ptr<control::ControlChannel> control_;  // until Start
  std::shared_ptr<engine::Engine> engine_;
};

}  // namespace hvd::worker_runtime::api

#endif  // WORKER_RUNTIME_API_CONNECTED_GROUP_H_
