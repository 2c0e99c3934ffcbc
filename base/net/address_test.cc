#include "base/net/address.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd::net {
namespace {

const std::vector<OwnAddress>& Own() {
  static const auto* const own = new std::vector<OwnAddress>{
      {"lo", "127.0.0.1"}, {"eth0", "10.1.2.3"}, {"eth0", "fd00::5"}, {"ib0", "192.168.7.9"}};
  return *own;
}

TEST(AddressTest, SplitHostPort_BothFamilies_SplitsAtThePort) {
  EXPECT_EQ(SplitHostPort("10.0.0.1:80").host, "10.0.0.1");
  EXPECT_EQ(SplitHostPort("10.0.0.1:80").port, "80");
  EXPECT_EQ(SplitHostPort("[fd00::1]:80").host, "fd00::1");
  EXPECT_EQ(SplitHostPort("[fd00::1]:80").port, "80");
  EXPECT_EQ(SplitHostPort("[fd00::1]").port, "");
}

TEST(AddressTest, ParseSocketAddress_Numeric_RoundTrips) {
  EXPECT_EQ(NumericHost(ParseSocketAddress("10.0.0.1:80").value()), "10.0.0.1");
  EXPECT_EQ(NumericHost(ParseSocketAddress("[fd00::1]:80").value()), "fd00::1");
}

TEST(AddressTest, ParseSocketAddress_Other_IsInvalidArgument) {
  for (const char* bad : {"", "localhost:80", "10.0.0.1", "10.0.0.1:http", ":80x", "[::1]"}) {
    EXPECT_EQ(ParseSocketAddress(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(AddressTest, ChooseAddress_InterfaceOrNetwork_GivesFirstMatch) {
  EXPECT_EQ(ChooseAddress({"ib0"}, Own()).value(), "192.168.7.9");
  EXPECT_EQ(ChooseAddress({"10.0.0.0/8"}, Own()).value(), "10.1.2.3");
  EXPECT_EQ(ChooseAddress({"fd00::/16"}, Own()).value(), "fd00::5");
  EXPECT_EQ(ChooseAddress({"eth9", "192.168.6.0/23"}, Own()).value(), "192.168.7.9");
  EXPECT_EQ(ChooseAddress({"0.0.0.0/0"}, Own()).value(), "127.0.0.1");
}

TEST(AddressTest, ChooseAddress_NoMatch_ListsWhatThereIs) {
  const absl::Status status = ChooseAddress({"eth9", "10.1.3.0/24"}, Own()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("eth9,10.1.3.0/24"), absl::string_view::npos);
  EXPECT_NE(status.message().find("ib0 192.168.7.9"), absl::string_view::npos);
}

TEST(AddressTest, ChooseAddress_BrokenNetwork_IsInvalidArgument) {
  for (const char* bad : {"10.0.0.0/33", "10.0.0/8", "x/8", "10.0.0.0/", "fd00::/129"}) {
    EXPECT_EQ(ChooseAddress({bad}, Own()).status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST(AddressTest, OwnAddresses_Always_HasLoopback) {
  const absl::StatusOr<std::string> loopback = ChooseAddress({"127.0.0.0/8"}, OwnAddresses());
  EXPECT_TRUE(loopback.ok()) << loopback.status();
}

TEST(InterfaceOf, IsTheOneThatHasTheAddress) {
  const std::vector<OwnAddress> own = {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.5"}};
  EXPECT_EQ(InterfaceOf("10.0.0.5", own), "eth0");
  EXPECT_EQ(InterfaceOf("10.0.0.6", own), "");
}

}  // namespace
}  // namespace hvd::net
