#include "base/net/interfaces.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

const std::vector<InterfaceAddress>& Own() {
  static const auto* const own = new std::vector<InterfaceAddress>{
      {"lo", "127.0.0.1"}, {"eth0", "10.1.2.3"}, {"eth0", "fd00::5"}, {"ib0", "192.168.7.9"}};
  return *own;
}

TEST(CheckNetworks, NamesTheBadCidr) {
  EXPECT_TRUE(CheckNetworks({"eth0", "10.0.0.0/8", "fd00::/64", "0.0.0.0/0"}).ok());
  for (const char* bad : {"10.0.0.0/33", "10.0.0/8", "/8", "10.0.0.0/", "10.0.0.0/x", "fd00::/129",
                          "10.0.0.0/-1", "10.0.0.0/8/8"}) {
    EXPECT_THAT(std::string(CheckNetworks({bad}).message()), HasSubstr(bad));
  }
  EXPECT_FALSE(CheckNetworks({""}).ok());
}

TEST(InNetworks, ComparesExactlyTheNamedBits) {
  const InterfaceAddress address{"eth0", "10.0.15.5", false, false, true};
  EXPECT_TRUE(InNetworks(address, {}));
  EXPECT_TRUE(InNetworks(address, {"eth0"}));
  EXPECT_FALSE(InNetworks(address, {"eth01"}));
  EXPECT_TRUE(InNetworks(address, {"10.0.0.0/20"}));
  EXPECT_FALSE(InNetworks(address, {"10.0.0.0/21"}));
  EXPECT_TRUE(InNetworks(address, {"ib0", "10.0.15.5/32"}));
  EXPECT_FALSE(InNetworks(address, {"fd00::/1"}));
}

TEST(ListInterfaces, FindsLoopback) {
  auto interfaces = ListInterfaces();
  ASSERT_TRUE(interfaces.ok()) << interfaces.status();
  EXPECT_THAT(*interfaces, Contains(Field(&InterfaceAddress::loopback, true)));
}

TEST(InterfacesTest, ChooseAddress_InterfaceOrNetwork_GivesFirstMatch) {
  EXPECT_EQ(ChooseAddress({"ib0"}, Own()).value(), "192.168.7.9");
  EXPECT_EQ(ChooseAddress({"10.0.0.0/8"}, Own()).value(), "10.1.2.3");
  EXPECT_EQ(ChooseAddress({"fd00::/16"}, Own()).value(), "fd00::5");
  EXPECT_EQ(ChooseAddress({"eth9", "192.168.6.0/23"}, Own()).value(), "192.168.7.9");
  EXPECT_EQ(ChooseAddress({"0.0.0.0/0"}, Own()).value(), "127.0.0.1");
}

TEST(InterfacesTest, ChooseAddress_NoMatch_ListsTheInterfaces) {
  const absl::Status status = ChooseAddress({"eth9", "10.1.3.0/24"}, Own()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("eth9,10.1.3.0/24"), absl::string_view::npos);
  EXPECT_NE(status.message().find("ib0 192.168.7.9"), absl::string_view::npos);
}

TEST(InterfacesTest, ChooseAddress_BrokenNetwork_IsInvalidArgument) {
  for (const char* bad : {"10.0.0.0/33", "10.0.0/8", "x/8", "10.0.0.0/", "fd00::/129"}) {
    EXPECT_EQ(ChooseAddress({bad}, Own()).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST(InterfacesTest, ListInterfaces_HasLoopback) {
  const absl::StatusOr<std::string> loopback = ChooseAddress({"127.0.0.0/8"}, *ListInterfaces());
  EXPECT_TRUE(loopback.ok()) << loopback.status();
}

TEST(SourceAddressTo, IsTheOneOfTheRoute) {
  EXPECT_EQ(SourceAddressTo("127.0.0.1:1").value(), "127.0.0.1");
  EXPECT_EQ(SourceAddressTo("localhost:1").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(InterfaceOf, IsTheOneThatHasTheAddress) {
  const std::vector<InterfaceAddress> own = {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.5"}};
  EXPECT_EQ(InterfaceOf("10.0.0.5", own), "eth0");
  EXPECT_EQ(InterfaceOf("10.0.0.6", own), "");
}

}  // namespace
}  // namespace hvd::net
