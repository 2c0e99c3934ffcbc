// The input and output of a control connection's handshake.
#ifndef WORKER_RUNTIME_CONTROL_HANDSHAKE_IO_H_
#define WORKER_RUNTIME_CONTROL_HANDSHAKE_IO_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "base/net/wire.h"
#include "collectives/peer_handshake.h"

namespace hvd::worker_runtime::control {

inline constexpr absl::string_view kControlProtocol("hvdctrl2", collectives::kProtocolBytes);

// Sends all bytes at once. A handshake's parts are far smaller than a fresh socket's buffer: a
// socket that does not take them is broken.
bool SendAll(net::Wire& wire, absl::string_view bytes);

enum class ReadOutcome { kWhole, kPartial, kEnd };

// Reads up to `wanted` bytes in all, and never past them.
ReadOutcome ReadTowards(net::Wire& wire, size_t wanted, std::string& buffer);

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_HANDSHAKE_IO_H_
