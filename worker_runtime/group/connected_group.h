// The connections of one rank to a group, a world or a process set: the data plane, the control
// channel (in shared memory if the data plane is, else TCP), and the engine that uses both.
#ifndef WORKER_RUNTIME_GROUP_CONNECTED_GROUP_H_
#define WORKER_RUNTIME_GROUP_CONNECTED_GROUP_H_

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

namespace hvd::worker_runtime::group {

// The address and port of rank 0.
struct ControlRoot {
  std::string address;
  int port = 0;
};

// Thread-safe after Start; Connect and Start are called by one thread.
class ConnectedGroup {
 public:
  // Connects to the other ranks of the group, all of which must call it. They connect to this one
  // at group.port. Errors: those of Backend::Connect and ControlChannel::Connect.
  static absl::StatusOr<std::unique_ptr<ConnectedGroup>> Connect(
      const collectives::GroupInfo& group, collectives::Backend& backend,
      collectives::KeyExchange& keys, const ControlRoot& root, const WaitBounds& bounds);
  ~ConnectedGroup() { Shutdown(); }

  // Starts the engine. `devices` connects the ranks' devices; nullptr: tensors on devices fail.
  // Call it once.
  void Start(const engine::EngineOptions& options,
             std::shared_ptr<collectives::DeviceBackend> devices);

  // Results stay valid while the engine is referenced, even after Shutdown.
  // REQUIRES: Start was called.
  const std::shared_ptr<engine::Engine>& engine() const { return engine_; }

  // Leaves the group cleanly. None of its threads and descriptors remains. Idempotent.
  void Shutdown();

 private:
  explicit ConnectedGroup(const collectives::GroupInfo& group) : group_(group) {
    group_.port.reset();  // its connections own it as long as they need it
  }

  collectives::GroupInfo group_;
  const pid_t process_ = getpid();
  std::unique_ptr<collectives::Communicator> communicator_;
  std::unique_ptr<control::ControlChannel> control_;  // until Start
  std::shared_ptr<engine::Engine> engine_;
};

}  // namespace hvd::worker_runtime::group

#endif  // WORKER_RUNTIME_GROUP_CONNECTED_GROUP_H_
