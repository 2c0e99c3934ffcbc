#include "worker_runtime/group/connected_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "worker_runtime/control/mail_control_channel.h"

namespace hvd::worker_runtime::group {

absl::StatusOr<std::unique_ptr<ConnectedGroup>> ConnectedGroup::Connect(
    const collectives::GroupInfo& group, collectives::Backend& backend,
    collectives::KeyExchange& keys, const ControlRoot& root, const WaitBounds& bounds) {
  std::unique_ptr<ConnectedGroup> result(new ConnectedGroup(group));
  ASSIGN_OR_RETURN(result->communicator_, backend.Connect(group, keys, bounds));
  RETURN_IF_ERROR(FAILPOINT_STATUS("worker.connect.data_plane"));
  // Ranks that share memory exchange their control messages there too, and need no sockets.
  if (collectives::Mailbox* const mailbox = result->communicator_->mailbox()) {
    result->control_ = control::MakeMailControlChannel(*mailbox, group.rank, group.size);
    return result;
  }
  ASSIGN_OR_RETURN(result->control_,
                   control::ControlChannel::Connect(group, root.address, root.port, bounds));
  return result;
}

void ConnectedGroup::Start(const engine::EngineOptions& options,
                           std::shared_ptr<collectives::DeviceBackend> devices) {
  engine::EngineOptions complete = options;
  if (devices != nullptr) {
    complete.connect_devices = [this, devices = std::move(devices), warn = options.on_warning](
                                   int device, const WaitBounds& bounds) {
      std::string why_staged;
      auto connected = collectives::ConnectDevices(*devices, group_, device, *communicator_, bounds,
                                                   &why_staged);
      // Rank 0 alone, since the reason is the same for all.
      if (!why_staged.empty() && group_.rank == 0 && warn != nullptr) {
        warn(absl::StrCat("CUDA tensors go through host memory: ", why_staged));
      }
      // Every rank: the cause is in its own machine.
      if (connected.ok() && warn != nullptr) {
        const std::string warning = (*connected)->Warning();
        if (!warning.empty()) warn(warning);
      }
      return connected;
    };
  }
  engine_ = engine::Engine::Start(complete, *communicator_, std::move(control_));
}

void ConnectedGroup::Shutdown() {
  // A forked child has inherited the object but not its threads. The communicator is leaked: its
  // destructor would join threads and close connections that the parent uses.
  if (getpid() != process_) {
    (void)control_.release();
    (void)communicator_.release();
    return;
  }
  // Before the communicator is destroyed, which the engine's thread uses.
  if (engine_ != nullptr) engine_->Shutdown();
  control_
      .reset();  // it is still here if Start was not called, and uses the communicator's mailbox
  communicator_.reset();
}

}  // namespace hvd::worker_runtime::group
