#include "base/net/local_network.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

std::vector<InterfaceAddress> Interfaces() {
  return {{"lo", "127.0.0.1", false, true, true},     {"lo", "::1", true, true, true},
          {"eth0", "10.0.0.5", false, false, true},   {"eth0", "fd00::5", true, false, true},
          {"ib0", "192.168.7.5", false, false, true}, {"down0", "10.9.0.5", false, false, false}};
}

std::vector<std::string> Listen(const std::vector<std::string>& networks,
                                const std::vector<std::string>& preferred = {}) {
  auto result = ListenAddresses(Interfaces(), networks, false, preferred);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(std::vector<std::string>{});
}

std::string ListenError(const std::vector<std::string>& networks, bool all_local) {
  return std::string(ListenAddresses(Interfaces(), networks, all_local, {}).status().message());
}

TEST(IsLoopbackAddress, KnowsAllForms) {
  for (const char* own : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(IsLoopbackAddress(own)) << own;
  for (const char* other : {"10.0.0.1", "::2", "::ffff:10.0.0.1", "fe80::1", "", "localhost"})
    EXPECT_FALSE(IsLoopbackAddress(other)) << other;
}

TEST(IsLocalHost, KnowsItsOwnNamesAndAddresses) {
  const NameTable names = {{"me.example", {"1.2.3.4", "10.0.0.5"}}, {"other", {"10.0.0.6"}}};
  for (const char* host : {"localhost", "127.0.0.1", "127.3.2.1", "::1", "box", "10.0.0.5",
                           "fd00:0::5", "me.example"}) {
    EXPECT_TRUE(IsLocalHost(host, "box", Interfaces(), names)) << host;
  }
  for (const char* host : {"other", "10.0.0.6", "ssh-alias", "box2"}) {
    EXPECT_FALSE(IsLocalHost(host, "box", Interfaces(), names)) << host;
  }
}

TEST(ListenAddresses, AllLocalJobStaysOnLoopback) {
  auto result = ListenAddresses(Interfaces(), {"lo"}, true, {});
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(*result, ElementsAre("127.0.0.1:0"));
  EXPECT_EQ(ListenError({"eth9"}, true),
            "unknown network interface 'eth9'; this machine has down0, eth0, ib0, lo");
}

TEST(ListenAddresses, EveryUsableAddressButPreferredFirst) {
  EXPECT_THAT(Listen({}), ElementsAre("10.0.0.5:0", "[fd00::5]:0", "192.168.7.5:0"));
  EXPECT_THAT(Listen({}, {"192.168.7.5"}),
              ElementsAre("192.168.7.5:0", "10.0.0.5:0", "[fd00::5]:0"));
}

TEST(ListenAddresses, NetworksRestrict) {
  EXPECT_THAT(Listen({"ib0"}), ElementsAre("192.168.7.5:0"));
  EXPECT_THAT(Listen({"10.0.0.0/8"}), ElementsAre("10.0.0.5:0"));
  EXPECT_THAT(Listen({"ib0", "only-on-other-hosts"}), ElementsAre("192.168.7.5:0"));
  EXPECT_THAT(ListenError({"eth9"}, false), HasSubstr("unknown network interface 'eth9'"));
  EXPECT_THAT(ListenError({"lo"}, false), HasSubstr("no address of this machine is left"));
  EXPECT_THAT(ListenError({"172.16.0.0/12"}, false), HasSubstr("within 172.16.0.0/12"));
}

TEST(ResolveNames, AnswersKnownNamesAndLeavesOutOthers) {
  const NameTable table = ResolveNames({"localhost", "127.0.0.9"}, absl::Seconds(10));
  EXPECT_EQ(table.count("localhost"), 1u);
  EXPECT_THAT(table.at("127.0.0.9"), ElementsAre("127.0.0.9"));
  EXPECT_TRUE(ResolveNames({}, absl::Seconds(10)).empty());
  EXPECT_EQ(ResolveNames({"no such name"}, absl::Seconds(10)).count("no such name"), 0u);
}

TEST(SourceAddressTowards, FindsTheWay) {
  EXPECT_EQ(SourceAddressTowards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(SourceAddressTowards("not an address"), "");
}

}  // namespace
}  // namespace hvd::net
