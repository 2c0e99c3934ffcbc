// Reading and writing during the handshake of a control connection.
#ifndef WORKER_RUNTIME_CONTROL_HANDSHAKE_IO_H_
#define WORKER_RUNTIME_CONTROL_HANDSHAKE_IO_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "base/net/wire.h"
#include "collectives/peer_handshake.h"

namespace hvd::worker_runtime::control {

inline constexpr absl::string_view kControlProtocol("hvdctrl2", collectives::kProtocolBytes);

// Sends all bytes at once; returns whether that has succeeded. The handshake's messages are far
// smaller than the buffer of a new socket, so a socket that does not take them is broken.
bool SendAll(net::Wire& wire, absl::string_view bytes);

enum class ReadOutcome { kWhole, kPartial, kEnd };

// Reads into `buffer` until it has `wanted` bytes, and never more: what follows the handshake
// belongs to the channel.
ReadOutcome ReadTowards(net::Wire& wire, size_t wanted, std::string& buffer);

}  // namespace hvd::worker_runtime::control

#endif  // WORKER_RUNTIME_CONTROL_HANDSHAKE_IO_H_
