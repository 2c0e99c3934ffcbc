#include "launcher/allocation/excerpt.h"

#include "gtest/gtest.h"

namespace hvd::launcher::allocation {
namespace {

TEST(ExcerptTest, IsOneShortPrintableLine) {
  EXPECT_EQ(Excerpt("node[1-2]"), "node[1-2]");
  EXPECT_EQ(Excerpt("n1\nfoo\x01"), "n1\\nfoo\\x01");
  EXPECT_EQ(Excerpt(std::string(20000, 'n')), std::string(100, 'n') + "...");
}

}  // namespace
}  // namespace hvd::launcher::allocation
