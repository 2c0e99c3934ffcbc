#include "base/text/edit_distance.h"

#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(EditDistance, CountsSingleChanges) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

}  // namespace
}  // namespace hvd::text
