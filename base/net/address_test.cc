#include "base/net/address.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd::net {
namespace {

TEST(AddressTest, SplitHostPort_BothFamilies_SplitsAtThePort) {
  EXPECT_EQ(SplitHostPort("10.0.0.1:80").host, "10.0.0.1");
  EXPECT_EQ(SplitHostPort("10.0.0.1:80").port, "80");
  EXPECT_EQ(SplitHostPort("[fd00::1]:80").host, "fd00::1");
  EXPECT_EQ(SplitHostPort("[fd00::1]:80").port, "80");
  EXPECT_EQ(SplitHostPort("[fd00::1]").port, "");
}

TEST(AddressTest, JoinHostPort_BracketsVersionSix) {
  EXPECT_EQ(JoinHostPort("10.0.0.1", "80"), "10.0.0.1:80");
  EXPECT_EQ(JoinHostPort("::1", "80"), "[::1]:80");
}

TEST(AddressTest, ParseSocketAddress_Numeric_RoundTrips) {
  EXPECT_EQ(NumericHost(ParseSocketAddress("10.0.0.1:80").value()), "10.0.0.1");
  EXPECT_EQ(NumericHost(ParseSocketAddress("[fd00::1]:80").value()), "fd00::1");
}

TEST(AddressTest, ParseSocketAddress_LinkLocal_HasItsInterface) {
  EXPECT_EQ(NumericHost(ParseSocketAddress("[fe80::1%lo]:80").value()), "fe80::1%lo");
  EXPECT_EQ(NumericHost(ParseSocketAddress("[fe80::1%1]:80").value()), "fe80::1%lo");
  for (const char* bad : {"[fe80::1%]:80", "[fe80::1%no-such]:80", "[fe80::1%4000000000]:80",
                          "[fe80::1%0]:80", "[fd00::1%lo]:80", "10.0.0.1%lo:80"}) {
    EXPECT_FALSE(ParseSocketAddress(bad).ok()) << bad;
  }
}

TEST(AddressTest, WhatFollowsANul_IsNotOverlooked) {
  const std::string nul("10.0.0.1\0x", 10);
  EXPECT_EQ(AddressBytes(nul), "");
  EXPECT_FALSE(ParseSocketAddress(nul + ":80").ok());
}

TEST(AddressTest, ParseSocketAddress_Other_IsInvalidArgument) {
  for (const char* bad : {"", "localhost:80", "10.0.0.1", "10.0.0.1:http", ":80x", "[::1]",
                          "::1:80", "10.1:80", "10.0.0.1:65536", "[10.0.0.1]:80", "10.0.0.1:"}) {
    EXPECT_EQ(ParseSocketAddress(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace hvd::net
