// Fuzz target: the value of -H.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/discovery/host_list.h"
#include "tests/support/fuzzing.h"

namespace hvd::launcher::discovery {
namespace {

using rendezvous::membership::HostSlots;
std::string Written(const std::vector<HostSlots>& hosts) {
  return absl::StrJoin(hosts, ",", [](std::string* out, const HostSlots& host) {
    const bool bracketed = absl::StrContains(host.host, ':') || absl::StrContains(host.host, '%');
    absl::StrAppend(out, bracketed ? "[" : "", host.host, bracketed ? "]" : "", ":", host.slots);
  });
}

void Check(absl::string_view text) {
  const auto hosts = ParseHostList(text);
  if (!hosts.ok()) return RequireOneLine(hosts.status());
  const auto again = ParseHostList(Written(*hosts));
  Require(again.ok() && Written(*again) == Written(*hosts), "what is written can be read");
  int slots = 0;
  for (const HostSlots& host : *hosts) {
    Require(host.slots >= 1 && host.slots <= 65536, "a host has slots");
    slots += host.slots;
  }
  for (const int wanted : {1, slots, slots + 1}) {
    const auto taken = TakeSlots(*hosts, wanted);
    Require(taken.ok() == (wanted <= slots), "there are as many slots as are listed");
  }
}

}  // namespace
}  // namespace hvd::launcher::discovery

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::launcher::discovery::Check(hvd::AsText(data, size));
  return 0;
}
