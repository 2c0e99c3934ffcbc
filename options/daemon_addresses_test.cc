#include "options/daemon_addresses.h"

#include "gtest/gtest.h"

namespace hvd::options {
namespace {

TEST(ParseDaemonsTest, OneOrSeveral) {
  const auto daemons = ParseDaemons("--join", "node1:4000,[fd00::2]:2");
  ASSERT_TRUE(daemons.ok()) << daemons.status();
  ASSERT_EQ(daemons->size(), 2u);
  EXPECT_EQ((*daemons)[0].host, "node1");
  EXPECT_EQ((*daemons)[0].port, "4000");
  EXPECT_EQ((*daemons)[1].host, "fd00::2");
  EXPECT_EQ((*daemons)[1].port, "2");
}

TEST(ParseDaemonsTest, OtherTexts_AreRefusedWithTheOption) {
  EXPECT_EQ(ParseDaemons("--connect", "a:1,b").status().message(),
            "--connect: 'b' is not a host and a port, as node1:4000 or [fd00::1]:4000");
  for (const char* text : {"", "a:1,", ":1", "a:0", "a:65536", "a:x", "fd00::1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseDaemons("--join", text).status())) << text;
  }
}

}  // namespace
}  // namespace hvd::options
