#include "launcher/discovery/host_list.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::discovery {
namespace {

using ::testing::HasSubstr;

constexpr char kFormat[] = "Write each host as HOST:SLOTS, for example";

std::string Error(absl::string_view list) {
  auto hosts = ParseHostList(list);
  EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument) << list;
  const std::string message(hosts.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(ParseHostList, KeepsOrderAndSlots) {
  auto hosts = ParseHostList("b-1.example_x:2, a:10");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  ASSERT_EQ(hosts->size(), 2u);
  EXPECT_EQ((*hosts)[0].host, "b-1.example_x");
  EXPECT_EQ((*hosts)[0].slots, 2);
  EXPECT_EQ((*hosts)[1].host, "a");
  EXPECT_EQ((*hosts)[1].slots, 10);
}

TEST(ParseHostList, AddressOfVersion6StandsInBrackets) {
  auto hosts = ParseHostList("[fd00::1]:4");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ((*hosts)[0].host, "fd00::1");
  EXPECT_EQ((*hosts)[0].slots, 4);
  EXPECT_THAT(Error("[fd00::1]"), HasSubstr("names no number of slots"));
  EXPECT_THAT(Error("fd00::1:4"), HasSubstr("'fd00::1' is not a host name"));
}

TEST(ParseHostList, SlotsAreMandatory) {
  EXPECT_THAT(Error("localhost"), HasSubstr(kFormat));
  EXPECT_THAT(Error("a:2,b"), HasSubstr("'b' names no number of slots"));
  EXPECT_THAT(Error("host:"), HasSubstr("host host: '' is not a number of slots"));
  EXPECT_THAT(Error("host:x"), HasSubstr("'x' is not a number of slots"));
  EXPECT_THAT(Error("host:-1"), HasSubstr("'-1' is not a number of slots"));
  EXPECT_THAT(Error("host:99999999999"), HasSubstr("is not a number of slots"));
}

TEST(ParseHostList, SlotsHaveBounds) {
  EXPECT_THAT(Error("host:0"), HasSubstr("host host: 0 slots"));
  EXPECT_THAT(Error("host:65537"), HasSubstr("65537 slots"));
}

TEST(ParseHostList, EmptyAndOddNamesAreRefused) {
  EXPECT_THAT(Error(""), HasSubstr(kFormat));
  EXPECT_THAT(Error("a:1,"), HasSubstr(kFormat));
  EXPECT_THAT(Error(":1"), HasSubstr(kFormat));
  EXPECT_THAT(Error("-oProxyCommand:1"), HasSubstr("is not a host name"));
  EXPECT_THAT(Error("a b:1"), HasSubstr("is not a host name"));
  EXPECT_THAT(Error("a;b:1"), HasSubstr("is not a host name"));
}

TEST(ParseHostList, DuplicateHostIsNamed) {
  EXPECT_THAT(Error("a:1,b:1,a:2"), HasSubstr("host a is listed twice"));
}

TEST(TakeSlots, OmitsUnneededSlots) {
  auto taken = TakeSlots({{"a", 2}, {"b", 4}, {"c", 1}}, 3);
  ASSERT_TRUE(taken.ok());
  ASSERT_EQ(taken->size(), 2u);
  EXPECT_EQ((*taken)[0].slots, 2);
  EXPECT_EQ((*taken)[1].host, "b");
  EXPECT_EQ((*taken)[1].slots, 1);
}

TEST(TakeSlots, TooFewSlotsNamesBothNumbers) {
  EXPECT_EQ(TakeSlots({{"a", 1}, {"b", 1}}, 3).status().message(),
            "3 processes need 3 slots, but the hosts have 2: start fewer, or list more slots");
}

}  // namespace
}  // namespace hvd::launcher::discovery
