// Fuzz target: addresses of hosts as other processes and users write them.
#include "base/net/address.h"
#include "base/net/listen_address.h"
#include "tests/support/fuzzing.h"

namespace hvd::net {
namespace {

void CheckNumeric(absl::string_view text) {
  const auto address = ParseSocketAddress(text);
  if (!address.ok()) return RequireOneLine(address.status());
  const std::string host = NumericHost(*address);
  const auto again = ParseSocketAddress(JoinHostPort(host, SplitHostPort(text).port));
  Require(again.ok(), "what is printed can be parsed");
  Require(again->length == address->length && NumericHost(*again) == host, "the host is the same");
}

void CheckListenAddress(absl::string_view text) {
  const auto address = ParseListenAddress(text);
  if (!address.ok()) return RequireOneLine(address.status());
  Require(ParseListenAddress(address->WithPort(80)).ok(), "another port fits");
}

}  // namespace
}  // namespace hvd::net

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = hvd::AsText(data, size);
  hvd::net::CheckNumeric(text);
  hvd::net::CheckListenAddress(text);
  const size_t bytes = hvd::net::AddressBytes(std::string(text)).size();
  hvd::Require(bytes == 0 || bytes == 4 || bytes == 16, "an address has 4 or 16 bytes");
  return 0;
}
