// Fuzz target: what an agent hears from another one: proofs of the token, and heads of copies.
#include "agent/copies/channel.h"
#include "tests/support/fuzzing.h"

namespace hvd::agent::copies {
namespace {

// No bytes prove that their sender knows the token.
void CheckHandshake(net::TlsEnd end, absl::string_view bytes) {
  const Trust trust = {nullptr, "the job's token"};
  const auto handshake = MakeTokenHandshake(trust, end, "binding");
  handshake->Start();
  const auto answer = handshake->Step(bytes.substr(0, handshake->wanted()));
  Require(!answer.ok() && handshake->wanted() > 0, "a stranger has proved nothing");
  RequireOneLine(answer.status());
}

}  // namespace
}  // namespace hvd::agent::copies

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::agent::copies::CopyHead;
  const absl::string_view bytes = hvd::AsText(data, size);
  const CopyHead head = CopyHead::Decode(bytes);
  hvd::Require(size < CopyHead::kBytes || head.Encoded() == bytes.substr(0, CopyHead::kBytes),
               "a head encodes to what was decoded");
  hvd::agent::copies::DecodeNumber(bytes);
  hvd::agent::copies::CheckHandshake(hvd::net::TlsEnd::kAccepts, bytes);
  hvd::agent::copies::CheckHandshake(hvd::net::TlsEnd::kConnects, bytes);
  return 0;
}
