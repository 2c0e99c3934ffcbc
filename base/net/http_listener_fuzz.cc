// Fuzz target: heads of HTTP requests.
#include <algorithm>

#include "absl/strings/match.h"
#include "base/net/http_listener.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const hvd::net::HttpRequest request = hvd::net::ParseHttpRequest(hvd::AsText(data, size));
  Require(request.error == 0 || request.error == 400 || request.error == 405, "a known code");
  if (request.error != 0) return 0;
  Require(absl::StartsWith(request.path, "/"), "a path begins with a slash");
  Require(request.path.find_first_of("? ") == std::string::npos, "it is a path only");
  Require(request.host.size() <= size, "a host is part of the head");
  hvd::net::IsHostOfThisMachine(request.host, "node1");
  return 0;
}
