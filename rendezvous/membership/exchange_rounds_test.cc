#include "rendezvous/membership/exchange_rounds.h"

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
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

TEST_F(ExchangeRoundsTest, LongKey_IsRefused) {
  std::vector<Effect> effects = Give(0, 10, std::string(ExchangeRounds::kMaxKeyBytes + 1, 'k'), "");
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 10, absl::StatusCode::kInvalidArgument);
}

TEST_F(ExchangeRoundsTest, OpenCallsOfARank_AreBounded) {
  const auto key = [](uint64_t i) { return absl::StrCat("k", i); };
  for (uint64_t i = 0; i < ExchangeRounds::kMaxOpen; ++i) {
    ASSERT_THAT(Give(0, i, key(i), ""), IsEmpty());
  }
  std::vector<Effect> effects = Give(0, 1000, "more", "");
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 1000, absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Give(1, 1001, "more", ""), IsEmpty()) << "another rank";
  EXPECT_THAT(Give(0, 1002, key(0), ""), SizeIs(1)) << "a repetition";
  EXPECT_THAT(Give(1, 1003, key(0), ""), SizeIs(2));
  EXPECT_THAT(Give(0, 1004, "more", ""), SizeIs(2)) << "one is complete";
  EXPECT_THAT(Give(0, 1005, "again", ""), IsEmpty());
  EXPECT_THAT(Give(0, 1006, "too many", ""), SizeIs(1));
  effects.clear();
  EXPECT_TRUE(rounds_.Withdraw(CallId(1005), absl::CancelledError(""), &effects));
  EXPECT_THAT(Give(0, 1007, "again", ""), IsEmpty());
  rounds_.Forget();
  EXPECT_THAT(Give(0, 1008, "after a restart", ""), IsEmpty());
}

TEST_F(ExchangeRoundsTest, OpenBytesOfARank_AreBounded) {
  const std::string large(ExchangeRounds::kMaxValueBytes, 'x');
  for (const char* key : {"a", "b", "c"}) EXPECT_THAT(Give(0, 1, key, large), IsEmpty());
  const std::vector<Effect> effects = Give(0, 2, "d", large);
  ASSERT_THAT(effects, SizeIs(1));
  ExpectStatus(effects[0], 2, absl::StatusCode::kResourceExhausted);
}

// A world of one member completes any number of rounds.
// Every rank may get all of it.
TEST(LargeExchangeRoundsTest, BytesOfARound_AreBounded) {
  constexpr int kFull = ExchangeRounds::kMaxRoundBytes / ExchangeRounds::kMaxValueBytes;
  ExchangeRounds rounds(kFull + 1);
  const auto give = [&](int rank, const std::string& value) {
    std::vector<Effect> effects;
    rounds.Give(rank, CallId(100 + rank), "k", value, &effects);
    return effects;
  };
  const std::string large(ExchangeRounds::kMaxValueBytes, 'x');
  for (int rank = 0; rank < kFull; ++rank) EXPECT_THAT(give(rank, large), IsEmpty());
  const std::vector<Effect> effects = give(kFull, "x");
  ASSERT_THAT(effects, SizeIs(1));
  EXPECT_EQ(std::get<ReplyStatus>(effects[0]).status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(give(0, large), SizeIs(1)) << "a repetition";
  EXPECT_THAT(give(0, ""), SizeIs(1)) << "another repetition";
  EXPECT_THAT(give(kFull, large), SizeIs(kFull + 1)) << "there is room again";
}

TEST_F(ExchangeRoundsTest, Results_TheNewestAreKept) {
  const std::string large(ExchangeRounds::kMaxValueBytes, 'x');
  const auto complete = [&](const std::string& key, const std::string& value) {
    Give(0, 1, key, value);
    Give(1, 2, key, value);
  };
  const auto is_kept = [&](const std::string& key) { return !Give(0, 3, key, "").empty(); };
  for (int i = 0; i < 8; ++i) complete(absl::StrCat(i), large);
  EXPECT_TRUE(is_kept("7"));
  EXPECT_TRUE(is_kept("1"));
  EXPECT_FALSE(is_kept("0"));
  for (size_t i = 0; i < ExchangeRounds::kMaxKept; ++i) complete(absl::StrCat("small", i), "");
  EXPECT_FALSE(is_kept("7"));
  EXPECT_TRUE(is_kept("small0"));
}

TEST_F(ExchangeRoundsTest, LargestValue_IsTaken) {
  EXPECT_THAT(Give(0, 10, "k", std::string(ExchangeRounds::kMaxValueBytes, 'x')), IsEmpty());
}

}  // namespace
}  // namespace hvd::rendezvous::membership
