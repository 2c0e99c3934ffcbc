#include "collectives/messages/matcher.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::collectives::messages {
namespace {

TransferPtr ReceiveOf(uint64_t tag) {
  return std::make_shared<Transfer>(Transfer::Direction::kReceive, 0, Message{tag, 0}, nullptr, 0,
                                    nullptr);
}

ArrivalPtr ArrivalOf(int source, uint64_t tag, bool complete = true) {
  auto arrival = std::make_shared<Arrival>();
  arrival->source = source;
  arrival->message.tag = tag;
  arrival->complete = complete;
  return arrival;
}

TEST(MatcherTest, MessagesOfOneSenderAndTag_InOrder) {
  Matcher matcher;
  const ArrivalPtr first = ArrivalOf(1, 5), second = ArrivalOf(1, 5);
  EXPECT_EQ(matcher.TakePosted(1, 5), nullptr);
  matcher.Keep(first);
  matcher.Keep(second);
  EXPECT_EQ(matcher.TakeArrived(1, 6), nullptr);
  EXPECT_EQ(matcher.TakeArrived(2, 5), nullptr);
  EXPECT_EQ(matcher.TakeArrived(1, 5), first);
  EXPECT_EQ(matcher.TakeArrived(1, 5), second);
  EXPECT_EQ(matcher.TakeArrived(1, 5), nullptr);
  EXPECT_TRUE(matcher.empty());
}

TEST(MatcherTest, Receives_InTheOrderInWhichTheyWerePosted) {
  Matcher matcher;
  const TransferPtr of_one = ReceiveOf(5), any = ReceiveOf(5), of_one_later = ReceiveOf(5);
  matcher.Post(1, of_one);
  matcher.Post(kAnySource, any);
  matcher.Post(1, of_one_later);
  EXPECT_EQ(matcher.TakePosted(1, 4), nullptr);
  EXPECT_EQ(matcher.TakePosted(1, 5), of_one);
  EXPECT_EQ(matcher.TakePosted(1, 5), any);
  EXPECT_EQ(matcher.TakePosted(2, 5), nullptr);
  EXPECT_EQ(matcher.TakePosted(1, 5), of_one_later);
  EXPECT_TRUE(matcher.empty());
}

TEST(MatcherTest, AnySource_TakesWhatHasWaitedLongest) {
  Matcher matcher;
  const ArrivalPtr first = ArrivalOf(2, 5), second = ArrivalOf(1, 5), third = ArrivalOf(2, 5);
  for (const ArrivalPtr& arrival : {first, second, third}) matcher.Keep(arrival);
  for (const ArrivalPtr& arrival : {first, second, third}) {
    EXPECT_EQ(matcher.TakeArrived(kAnySource, 5), arrival);
  }
  EXPECT_TRUE(matcher.empty());
}

TEST(MatcherTest, TakeAllPosted_OfOneSourceOnly) {
  Matcher matcher;
  const TransferPtr first = ReceiveOf(1), second = ReceiveOf(2), any = ReceiveOf(1);
  matcher.Post(3, first);
  matcher.Post(3, second);
  matcher.Post(kAnySource, any);
  EXPECT_EQ(matcher.TakeAllPosted(4), std::vector<TransferPtr>());
  EXPECT_EQ(matcher.TakeAllPosted(3).size(), 2u);
  EXPECT_EQ(matcher.TakeAllPosted(kAnySource), std::vector<TransferPtr>({any}));
  EXPECT_TRUE(matcher.empty());
}

TEST(MatcherTest, Drop_KeepsWhatIsNotLost) {
  Matcher matcher;
  const ArrivalPtr complete = ArrivalOf(1, 5);
  const ArrivalPtr of_other = ArrivalOf(2, 5, /*complete=*/false);
  matcher.Keep(ArrivalOf(1, 5, /*complete=*/false));
  matcher.Keep(complete);
  matcher.Keep(of_other);
  matcher.Drop(1, [](const Arrival& arrival) { return !arrival.complete; });
  EXPECT_EQ(matcher.TakeArrived(1, 5), complete);
  EXPECT_EQ(matcher.TakeArrived(1, 5), nullptr);
  EXPECT_EQ(matcher.TakeArrived(2, 5), of_other);
}

}  // namespace
}  // namespace hvd::collectives::messages
