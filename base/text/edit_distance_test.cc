#include "base/text/edit_distance.h"

#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(EditDistance, CountsSingleChanges) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(NearestTest, TheFirstOfTheClosestWords_WithinTheLimit) {
  EXPECT_EQ(Nearest("cat", {"cart", "cut", "cats", "dog"}, 2), "cart");
  EXPECT_EQ(Nearest("dot", {"cut", "dog"}, 2), "dog");
  EXPECT_EQ(Nearest("cat", {"house"}, 2), "");
  EXPECT_EQ(Nearest("cat", {}, 2), "");
}

}  // namespace
}  // namespace hvd::text
