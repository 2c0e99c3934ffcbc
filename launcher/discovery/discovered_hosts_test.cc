#include "launcher/discovery/discovered_hosts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::discovery {
namespace {

using ::testing::HasSubstr;

struct GoodCase {
  const char* text;
  int slots_per_host;
  const char* hosts;
};

TEST(ParseDiscoveredHosts, GoodOutput_IsRead) {
  const GoodCase cases[] = {
      {"", 0, ""},
      {"\n \r\n\t\n", 0, ""},
      {"a:2\nb:4\n", 0, "a=2 b=4"},
      {"a:2", 0, "a=2"},
      {"  b:1\r\n\r\na:3\r\n", 0, "b=1 a=3"},
      {"a\nb:4\n", 2, "a=2 b=4"},
      {"10.0.0.1:8\n[fd00::1]:2\n", 0, "10.0.0.1=8 fd00::1=2"},
      {"[fd00::1]\n", 3, "fd00::1=3"},
      {"a:1\nb:2\na:1\n", 0, "a=1 b=2"},
      {"a\na:2\n", 2, "a=2"},
      {"a:0\nb:2\n[fd00::1]:0\n", 0, "b=2"},
      {"# the spot nodes\na:1\n  # b:1\n", 0, "a=1"},
  };
  for (const GoodCase& c : cases) {
    auto hosts = ParseDiscoveredHosts(c.text, c.slots_per_host);
    ASSERT_TRUE(hosts.ok()) << c.text << ": " << hosts.status();
    EXPECT_EQ(absl::StrJoin(*hosts, " ",
                            [](std::string* out, const rendezvous::membership::HostSlots& host) {
                              absl::StrAppend(out, host.host, "=", host.slots);
                            }),
              c.hosts);
  }
}

TEST(ParseDiscoveredHosts, Rubbish_IsRefusedAsAWholeAndNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"a\n", "line 1: 'a' names no number of slots; print a:SLOTS, or give --slots-per-host"},
      {"a:1\n\nb:x\n", "line 3: host b: 'x' is not a number of slots"},
      {"a:00", "line 1: host a: 0 slots"},
      {"a b:0", "is not a host name"},
      {"a:1\nb:1\na:2\n", "line 3: host a has 2 slots, but 1 in line 1"},
      {"a b:1\n", "is not a host name"},
      {"no hosts\n", "'no hosts' is not a host name"},
      {"-oProxyCommand=x:1\n", "is not a host name"},
      {":2\n", "line 1: "},
      {"fd00::1\n", "is not a host name"},
  };
  for (const auto& [text, part] : cases) {
    auto hosts = ParseDiscoveredHosts(text, 0);
    EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(hosts.status().message()), HasSubstr(part));
    EXPECT_EQ(hosts.status().message().find('\n'), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace hvd::launcher::discovery
