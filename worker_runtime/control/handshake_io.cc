#include "worker_runtime/control/handshake_io.h"

namespace hvd::worker_runtime::control {

bool SendAll(net::Wire& wire, absl::string_view bytes) {
  return bytes.empty() || wire.Write(bytes).bytes == bytes.size();
}

ReadOutcome ReadTowards(net::Wire& wire, size_t wanted, std::string& buffer) {
  const size_t had = buffer.size();
  buffer.resize(wanted);
  const IoResult got = wire.Read(&buffer[had], wanted - had);
  buffer.resize(had + got.bytes);
  if (buffer.size() == wanted) return ReadOutcome::kWhole;
  return got.end ? ReadOutcome::kEnd : ReadOutcome::kPartial;
}

}  // namespace hvd::worker_runtime::control
