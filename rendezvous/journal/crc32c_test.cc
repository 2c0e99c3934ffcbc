#include "rendezvous/journal/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd {
namespace {

// RFC 3720, B.4, and the customary check value.
TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

}  // namespace
}  // namespace hvd
