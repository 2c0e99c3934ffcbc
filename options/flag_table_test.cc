#include "options/flag_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::options {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Fixture {
  std::vector<std::string> values;
  int flags = 0;
  FlagTable table{"prog [options]", {{"--gone", {"--gone"}, false, "it left"}}};

  Fixture() {
    table.Group("Things");
    table.Value("-n,--number", "N", "A number", [this](const std::string& text) {
      if (text == "bad") return absl::InvalidArgumentError("bad number");
      values.push_back(text);
      return absl::OkStatus();
    });
    table.SingleDash("--number", "-nn");
    table.Flag("--on", "Turn on", [this] { ++flags; });
    table.Harmless("--hidden");
  }
};

TEST(FlagTable, CallsHandlersWithEveryValueInOrder) {
  Fixture f;
  auto result =
      f.table.Parse({"--number", "1", "-nn", "2", "-n3", "--on", "--hidden", "cmd", "-n"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(f.values, ElementsAre("1", "2", "3"));
  EXPECT_EQ(f.flags, 1);
  EXPECT_THAT(result->command, ElementsAre("cmd", "-n"));
  EXPECT_FALSE(result->help);
}

TEST(FlagTable, ValuesOfAnyFormArriveUnchanged) {
  Fixture f;
  ASSERT_TRUE(f.table.Parse({"--number=[a,b]", "-n", "a=b", "--number=-x", "-n", "a b"}).ok());
  EXPECT_THAT(f.values, ElementsAre("[a,b]", "a=b", "-x", "a b"));
}

TEST(FlagTable, FirstErrorOfAHandlerIsReturned) {
  Fixture f;
  EXPECT_EQ(f.table.Parse({"-n", "bad"}).status().message(), "bad number");
}

TEST(FlagTable, Parse_DefaultCountsUnlessTheFlagIsGiven) {
  Fixture f;
  ASSERT_TRUE(f.table.Parse({"--on", "cmd"}, {"--number=1"}).ok());
  EXPECT_THAT(f.values, ElementsAre("1"));
  Fixture g;
  ASSERT_TRUE(g.table.Parse({"-n2", "cmd"}, {"--number=1"}).ok());
  EXPECT_THAT(g.values, ElementsAre("2"));
}

TEST(FlagTable, Parse_DefaultGivesWayToTheOppositeFlag) {
  for (const bool reversed : {false, true}) {
    Fixture f;
    f.table.Opposites(reversed ? "--hidden" : "--on", reversed ? "--on" : "--hidden");
    ASSERT_TRUE(f.table.Parse({"--hidden", "cmd"}, {"--on"}).ok());
    EXPECT_EQ(f.flags, 0);
  }
}

TEST(FlagTable, Parse_OppositesOnOneCommandLineAreRefused) {
  Fixture f;
  f.table.Opposites("--on", "--hidden");
  EXPECT_EQ(f.table.Parse({"--hidden", "--on", "cmd"}).status().message(),
            "--on and --hidden exclude each other; give one of them");
}

TEST(FlagTable, RefusedFlagSaysWhy) {
  Fixture f;
  EXPECT_EQ(f.table.Parse({"--gone"}).status().message(), "--gone is not available: it left");
}

TEST(FlagTable, HelpListsVisibleFlagsByGroup) {
  Fixture f;
  EXPECT_TRUE(f.table.Parse({"-h"})->help);
  EXPECT_THAT(f.table.Help(), HasSubstr("Things:"));
  EXPECT_THAT(f.table.Help(), HasSubstr("-nn,-n,--number N"));
  EXPECT_THAT(f.table.Help(), HasSubstr("Usage: prog [options]"));
  EXPECT_THAT(f.table.Help(), Not(HasSubstr("--hidden")));
}

TEST(ParseInteger, HasBounds) {
  EXPECT_EQ(*ParseInteger("-n", "5", 0, 5), 5);
  EXPECT_EQ(ParseInteger("-n", "6", 0, 5).status().message(), "-n=6 must be <= 5");
  EXPECT_EQ(ParseInteger("-n", "-1", 0, 5).status().message(), "-n=-1 must be >= 0");
  EXPECT_EQ(ParseInteger("-n", "", 0, 5).status().message(), "-n: '' is not a whole number");
}

TEST(ParseSeconds, TakesFractionsBetweenBounds) {
  EXPECT_EQ(*ParseSeconds("--t", "1.5", 0, 5), absl::Milliseconds(1500));
  for (const char* bad : {"", "x", "-1", "5.1", "nan", "inf", "1e9"}) {
    EXPECT_EQ(ParseSeconds("--t", bad, 0, 5).status().message(),
              std::string("--t: '") + bad + "' is not a number of seconds from 0 to 5");
  }
}

TEST(FlagTable, UnknownFlagSaysWhereTheyAreListed) {
  Fixture f;
  EXPECT_EQ(f.table.Parse({"--zzzzzz"}).status().message(),
            "unknown option --zzzzzz; prog --help lists all");
}

}  // namespace
}  // namespace hvd::options
