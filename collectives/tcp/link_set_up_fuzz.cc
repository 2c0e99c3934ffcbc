// Fuzz target: addresses of ranks, from the key exchange.
#include "collectives/tcp/link_address.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const absl::string_view bytes = hvd::AsText(data, size);
  const auto address = hvd::collectives::tcp::ParseLinkAddress(bytes);
  Require(address.ok() == (size == hvd::collectives::tcp::kLinkAddressBytes), "the size decides");
  if (!address.ok()) return hvd::RequireOneLine(address.status()), 0;
  Require(hvd::collectives::tcp::LinkAddressOf(*address) == bytes, "the address stays the same");
  Require(!hvd::net::NumericHost(*address).empty(), "it can be printed");
  return 0;
}
