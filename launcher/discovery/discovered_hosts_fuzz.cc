// Fuzz target: what a host discovery script prints.
#include <set>

#include "launcher/discovery/discovered_hosts.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  for (const int slots_per_host : {0, 4}) {
    const auto hosts =
        hvd::launcher::discovery::ParseDiscoveredHosts(hvd::AsText(data, size), slots_per_host);
    if (!hosts.ok()) {
      hvd::RequireOneLine(hosts.status());
      continue;
    }
    std::set<std::string> names;
    for (const auto& host : *hosts) {
      Require(names.insert(host.host).second, "a host comes once");
      Require(host.slots >= 1 && host.slots <= 65536, "a host has slots");
    }
  }
  return 0;
}
