// Fuzz target: what an agent, or the login shell before it, writes to the launcher.
#include <vector>

#include "agent/protocol/agent_frames.h"
#include "tests/support/fuzzing.h"

namespace hvd::agent::protocol {
namespace {

struct Taken {
  std::vector<std::string> frames;
  bool ok = true;
};

Taken ReadInPieces(absl::string_view bytes, size_t piece) {
  AgentFrameReader reader;
  Taken taken;
  while (taken.ok && !bytes.empty()) {
    const absl::Status read = reader.Append(bytes.substr(0, piece), [&](pb::AgentFrame&& frame) {
      taken.frames.push_back(frame.SerializeAsString());
    });
    bytes.remove_prefix(std::min(piece, bytes.size()));
    taken.ok = read.ok();
    if (!read.ok()) RequireOneLine(read);
    Require(reader.noise().size() <= TextTail::kMaxBytes, "the noise is bounded");
  }
  return taken;
}

}  // namespace
}  // namespace hvd::agent::protocol

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::InputParts parts(data, size);
  const size_t piece = 1 + parts.Byte();
  const absl::string_view bytes = parts.Rest();
  const auto whole = hvd::agent::protocol::ReadInPieces(bytes, bytes.size());
  const auto pieces = hvd::agent::protocol::ReadInPieces(bytes, piece);
  hvd::Require(whole.ok == pieces.ok && whole.frames == pieces.frames, "the pieces do not matter");
  return 0;
}
