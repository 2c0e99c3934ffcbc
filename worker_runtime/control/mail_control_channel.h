// The control channel of ranks that share memory.
#ifndef WORKER_RUNTIME_CONTROL_MAIL_CONTROL_CHANNEL_H_
#define WORKER_RUNTIME_CONTROL_MAIL_CONTROL_CHANNEL_H_

#include <memory>

#include "collectives/mailbox.h"
#include "worker_runtime/control/control_channel.h"

namespace hvd {

// `mailbox` must outlive it.
std::unique_ptr<ControlChannel> MakeMailControlChannel(Mailbox& mailbox, int rank, int size);

}  // namespace hvd

#endif  // WORKER_RUNTIME_CONTROL_MAIL_CONTROL_CHANNEL_H_
