// Fuzz target: streams of control messages, as they are, and sealed ones that were changed.
#include <vector>

#include "tests/support/fuzzing.h"
#include "worker_runtime/control/control_messages.h"

namespace hvd::worker_runtime::control {
namespace {

constexpr size_t kMostBytes = 1000;

struct Decoded {
  std::vector<std::string> messages;
  bool ok = true;
};

Decoded Decode(absl::string_view bytes, size_t piece, FrameSeal* seal) {
  MessageDecoder decoder(seal, kMostBytes);
  Decoded all;
  while (all.ok && !bytes.empty()) {
    decoder.Append(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      const auto message = decoder.Next();
      all.ok = message.ok();
      if (!message.ok()) RequireOneLine(message.status());
      if (!message.ok() || !message->has_value()) break;
      Require((*message)->size() <= kMostBytes, "a message keeps to the bound");
      all.messages.push_back(**message);
    }
  }
  return all;
}

void CheckPieces(InputParts parts) {
  const size_t piece = 1 + parts.Byte();
  const absl::string_view bytes = parts.Rest();
  const Decoded whole = Decode(bytes, bytes.size(), nullptr);
  const Decoded pieces = Decode(bytes, piece, nullptr);
  Require(whole.ok == pieces.ok && whole.messages == pieces.messages, "the pieces do not matter");
}

// Whatever happens to a sealed stream, no message is read that was not sent.
void CheckSealed(InputParts parts) {
  FrameSeal sender("secret", 1, 0);
  FrameSeal receiver("secret", 1, 0);
  const size_t position = parts.Number(2);
  const uint8_t change = parts.Byte();
  std::vector<std::string> sent;
  std::string stream;
  while (!parts.empty() && sent.size() < 8) {
    sent.emplace_back(parts.Text().substr(0, kMostBytes));
    stream += *EncodeMessage(sent.back(), &sender);
  }
  if (stream.empty()) return;
  stream[position % stream.size()] ^= static_cast<char>(change);
  const Decoded got = Decode(stream, stream.size(), &receiver);
  Require(got.messages.size() <= sent.size(), "there are no more messages");
  Require(std::equal(got.messages.begin(), got.messages.end(), sent.begin()), "they are the same");
  Require((got.messages == sent) == (change == 0), "a change loses its message");
}

}  // namespace
}  // namespace hvd::worker_runtime::control

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hvd::InputParts parts(data, size);
  hvd::worker_runtime::control::CheckPieces(parts);
  hvd::worker_runtime::control::CheckSealed(parts);
  return 0;
}
