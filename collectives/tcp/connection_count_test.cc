#include "collectives/tcp/connection_count.h"

#include "gtest/gtest.h"

namespace hvd::collectives::tcp {
namespace {

// Most of the bytes waited for the network, which took `gbits` in a nanosecond.
SendPace HeldUp(uint64_t gbits) { return {1000, 800, 2000, 8 * 2000 / gbits}; }
// The kernel took nearly all at once, at 8 Gbit/s.
const SendPace kFree = {1000, 100, 2000, 2000};
const SendPace kNothingSent = {};

// A count after its first review, which decides nothing.
ConnectionCount NewCount() {
  ConnectionCount count({.large_bytes = 1, .review_bytes = 100});
  count.Review(0, HeldUp(1), HeldUp(1));
  EXPECT_FALSE(count.uses_several());
  return count;
}

// A count in its first try; the next review is due at 200 bytes.
ConnectionCount Trying(const SendPace& one_end, const SendPace& other_end) {
  ConnectionCount count = NewCount();
  count.Review(100, one_end, other_end);
  EXPECT_TRUE(count.uses_several());
  EXPECT_FALSE(count.is_settled());
  EXPECT_FALSE(count.IsReviewDue(199));
  EXPECT_TRUE(count.IsReviewDue(200));
  return count;
}

TEST(ConnectionCountTest, AtFirst_OneConnectionUntilTheReview) {
  EXPECT_FALSE(NewCount().uses_several());
  EXPECT_FALSE(NewCount().IsReviewDue(99));
  EXPECT_TRUE(NewCount().IsReviewDue(100));
}

TEST(ConnectionCountTest, NotBlocked_KeepsOneAndReviewsLater) {
  for (const SendPace& other_end : {kFree, kNothingSent}) {
    ConnectionCount count = NewCount();
    count.Review(100, kFree, other_end);
    EXPECT_FALSE(count.uses_several());
    EXPECT_FALSE(count.IsReviewDue(499));
    EXPECT_TRUE(count.IsReviewDue(500));
  }
}

TEST(ConnectionCountTest, OneEndBlocked_BothTrySeveral) {
  Trying(HeldUp(1), kFree);
  Trying(kNothingSent, HeldUp(1));
}

TEST(ConnectionCountTest, ClearlyFaster_StaysWithSeveral) {
  for (const SendPace& now : {HeldUp(8), kFree}) {
    ConnectionCount count = Trying(HeldUp(1), kNothingSent);
    count.Review(200, now, kNothingSent);
    EXPECT_TRUE(count.is_settled());
    EXPECT_TRUE(count.uses_several());
    EXPECT_FALSE(count.IsReviewDue(1'000'000));
  }
}

// The buffers of several connections take more at once.
TEST(ConnectionCountTest, NoLongerBlockedButNotFaster_ReturnsToOne) {
  ConnectionCount count = Trying(HeldUp(8), HeldUp(8));
  count.Review(200, kFree, kFree);
  EXPECT_FALSE(count.uses_several());
}

TEST(ConnectionCountTest, NotClearlyFaster_OneAgain_AndTheNextTryIsLater) {
  ConnectionCount count = Trying(HeldUp(8), HeldUp(8));
  count.Review(200, HeldUp(9), HeldUp(8));
  EXPECT_FALSE(count.uses_several());
  EXPECT_FALSE(count.IsReviewDue(599));
  count.Review(600, HeldUp(1), HeldUp(1));
  EXPECT_TRUE(count.uses_several());
  EXPECT_TRUE(count.IsReviewDue(700)) << "a try is as long as the first one";
}

// The time before a late try is longer than the try.
TEST(ConnectionCountTest, ALateTryMayBeKept) {
  ConnectionCount count = NewCount();
  uint64_t total = 100;
  for (uint64_t pause = 400; pause <= 6400; pause *= 4) {
    count.Review(total, kFree, kFree);
    total += pause;
    ASSERT_TRUE(count.IsReviewDue(total));
  }
  const SendPace before = {64 * 1000, 64 * 800, 64 * 2000, 8 * 64 * 2000};
  count.Review(total, before, before);
  EXPECT_TRUE(count.uses_several());
  count.Review(total + 100, HeldUp(8), HeldUp(8));
  EXPECT_TRUE(count.is_settled());
}

TEST(ConnectionCountTest, HardlyAnySentInTheTrial_DecidesNothing) {
  ConnectionCount count = Trying(HeldUp(1), kNothingSent);
  count.Review(200, kNothingSent, HeldUp(1));
  EXPECT_FALSE(count.uses_several());
  EXPECT_FALSE(count.is_settled());
}

TEST(ConnectionCountTest, OneDirectionFasterButTheOtherSlower_OneAgain) {
  ConnectionCount count = Trying(HeldUp(2), HeldUp(2));
  count.Review(200, HeldUp(8), HeldUp(1));
  EXPECT_FALSE(count.uses_several());
}

TEST(ConnectionCountTest, StayWithOne_EndsTheTryAndTheReviews) {
  ConnectionCount count = Trying(HeldUp(1), HeldUp(1));
  count.StayWithOne();
  EXPECT_FALSE(count.uses_several());
  EXPECT_FALSE(count.IsReviewDue(1'000'000));
}

TEST(ConnectionCountTest, TheEndsMayBeSwapped) {
  for (const uint64_t now : {1, 2, 4, 8}) {
    ConnectionCount near = Trying(HeldUp(2), HeldUp(4)), far = Trying(HeldUp(4), HeldUp(2));
    near.Review(200, HeldUp(now), HeldUp(4));
    far.Review(200, HeldUp(4), HeldUp(now));
    EXPECT_EQ(near.uses_several(), far.uses_several()) << now;
  }
}

TEST(ConnectionCountTest, PaceText_IsForPeople) {
  EXPECT_EQ(PaceText(HeldUp(4)), "4.0 Gbit/s");
  EXPECT_EQ(PaceText(kNothingSent), "0.0 Gbit/s");
}

}  // namespace
}  // namespace hvd::collectives::tcp
