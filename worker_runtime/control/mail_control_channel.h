// The control channel in shared memory, for ranks of one machine.
#ifndef WORKER_RUNTIME_CONTROL_MAIL_CONTROL_CHANNEL_H_
#define WORKER_RUNTIME_CONTROL_MAIL_CONTROL_CHANNEL_H_

#include <memory>

#include "collectives/mailbox.h"
#include "worker_runtime/control/control_channel.h"

namespace hvd::worker_runtime::control {

// Returns a channel that uses `mailbox`, which must outlive it.
std::unique_ptr<ControlChannel> MakeMailControlChannel(collectives::Mailbox& mailbox, int rank,
                                                       int size);

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_MAIL_CONTROL_CHANNEL_H_
