#include "rendezvous/membership/exchange_rounds.h"

#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ExchangeRoundsTest : public testing::Test {
 protected:
  std::vector<Effect> Give(int rank, uint64_t call, const std::string& key, std::string value) {
    std::vector<Effect> effects;
    rounds_.Give(rank, CallId(call), key, std::move(value), &effects);
    return effects;
  }
  static void ExpectValues(const Effect& effect, uint64_t call,
                           const std::vector<std::string>& values) {
    const auto* reply = std::get_if<ReplyExchange>(&effect);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->call, CallId(call));
    EXPECT_EQ(*reply->values, values);
  }
  static void ExpectStatus(const Effect& effect, uint64_t call, absl::StatusCode code) {
    const auto* reply = std::get_if<ReplyStatus>(&effect);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->call, CallId(call));
    EXPECT_THAT(reply->status, StatusIs(code));
  }

  ExchangeRounds rounds_{2};
};

TEST_F(ExchangeRoundsTest, LastGiver_AnswersAllInRankOrder) {
  EXPECT_THAT(Give(1, 10, "k", "one"), IsEmpty());
  const std::vector<Effect> effects = Give(0, 11, "k", "");
  ASSERT_THAT(effects, SizeIs(2));
  ExpectValues(effects[0], 11, {"", "one"});
  ExpectValues(effects[1], 10, {"", "one"});
}

TEST_F(ExchangeRoundsTest, Keys_AreSeparateRounds) {
  EXPECT_THAT(Give(0, 10, "k", "a"), IsEmpty());
  EXPECT_THAT(Give(1, 11, "l", "b"), IsEmpty());
  EXPECT_THAT(Give(1, 12, "k", "c"), SizeIs(2));
}

TEST_F(ExchangeRoundsTest, RepeatedCall_ReplacesTheParkedOne) {
  EXPECT_THAT(Give(0, 10, "k", "old"), IsEmpty());
  std::vector<Effect> effects = Give(0, 11, "k", "new");
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 10, absl::StatusCode::kCancelled);
  effects = Give(1, 12, "k", "x");
  ASSERT_THAT(effects, SizeIs(2));
  ExpectValues(effects[0], 11, {"new", "x"});
}

TEST_F(ExchangeRoundsTest, RepeatedCall_AfterTheRound_GetsTheSameAnswer) {
  Give(0, 10, "k", "a");
  Give(1, 11, "k", "b");
  const std::vector<Effect> effects = Give(1, 12, "k", "other");
  ASSERT_THAT(effects, SizeIs(1));
  ExpectValues(effects[0], 12, {"a", "b"});
}

TEST_F(ExchangeRoundsTest, Withdraw_TakesTheValueBack) {
  Give(0, 10, "k", "a");
  std::vector<Effect> effects;
  EXPECT_TRUE(rounds_.Withdraw(CallId(10), absl::CancelledError(""), &effects));
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 10, absl::StatusCode::kCancelled);
  EXPECT_FALSE(rounds_.Withdraw(CallId(10), absl::CancelledError(""), &effects));
  EXPECT_THAT(Give(1, 11, "k", "b"), IsEmpty());
}

TEST_F(ExchangeRoundsTest, Close_EndsParkedAndLaterCalls) {
  Give(0, 10, "k", "a");
  Give(1, 11, "l", "b");
  std::vector<Effect> effects;
  rounds_.Close(absl::FailedPreconditionError("rank 1 left"), &effects);
  rounds_.Close(absl::AbortedError("later"), &effects);
  ASSERT_THAT(effects, SizeIs(2));
  ExpectStatus(effects[0], 10, absl::StatusCode::kFailedPrecondition);
  ExpectStatus(effects[1], 11, absl::StatusCode::kFailedPrecondition);
  effects = Give(1, 12, "k", "b");
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 12, absl::StatusCode::kFailedPrecondition);
}

TEST_F(ExchangeRoundsTest, BadArguments_AreRefused) {
  std::vector<Effect> effects = Give(0, 10, "", "a");
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 10, absl::StatusCode::kInvalidArgument);
  effects = Give(0, 11, "k", std::string(ExchangeRounds::kMaxValueBytes + 1, 'x'));
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 11, absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::get<ReplyStatus>(effects[0]).status.message(), HasSubstr("1048577"));
}

TEST_F(ExchangeRoundsTest, LargestValue_IsTaken) {
  EXPECT_THAT(Give(0, 10, "k", std::string(ExchangeRounds::kMaxValueBytes, 'x')), IsEmpty());
}

}  // namespace
}  // namespace hvd::rendezvous::membership
