// Fuzz target: frames, which arrive in pieces of any size.
#include <vector>

#include "base/net/frames.h"
#include "tests/support/fuzzing.h"

namespace hvd::net {
namespace {

constexpr size_t kMostBytes = 1000;

struct Decoded {
  std::vector<std::string> messages;
  bool ok = true;
  bool empty = true;
};

Decoded DecodeInPieces(absl::string_view bytes, size_t piece) {
  FrameDecoder decoder(kMostBytes);
  Decoded all;
  do {
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
  } while (all.ok && !bytes.empty());
  all.empty = decoder.empty();
  return all;
}

}  // namespace
}  // namespace hvd::net

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  hvd::InputParts parts(data, size);
  const size_t piece = 1 + parts.Byte();
  const absl::string_view bytes = parts.Rest();
  const hvd::net::Decoded whole = hvd::net::DecodeInPieces(bytes, bytes.size() + 1);
  const hvd::net::Decoded pieces = hvd::net::DecodeInPieces(bytes, piece);
  Require(whole.messages == pieces.messages && whole.ok == pieces.ok, "the pieces do not matter");
  std::string encoded;
  for (const std::string& message : whole.messages) encoded += hvd::net::EncodeFrame(message);
  Require(bytes.substr(0, encoded.size()) == encoded, "the messages encode to what was decoded");
  Require(!whole.ok || whole.empty == (encoded.size() == bytes.size()), "nothing is forgotten");
  return 0;
}
