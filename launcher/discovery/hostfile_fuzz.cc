// Fuzz target: host files.
#include <set>

#include "absl/strings/match.h"
#include "launcher/discovery/hostfile.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const auto hosts = hvd::launcher::discovery::ParseHostfile(hvd::AsText(data, size), "hosts.txt");
  if (!hosts.ok()) {
    hvd::RequireOneLine(hosts.status());
    Require(absl::StrContains(hosts.status().message(), "hosts.txt"), "an error names the file");
    return 0;
  }
  Require(!hosts->empty(), "a host file has hosts");
  std::set<std::string> names;
  for (const auto& host : *hosts) {
    Require(names.insert(host.host).second, "a host is listed once");
    Require(host.slots >= 1 && host.slots <= 65536, "a host has slots");
  }
  return 0;
}
