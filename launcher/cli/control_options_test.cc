#include "launcher/cli/control_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::cli {
namespace {

using ::testing::HasSubstr;
using Action = ControlOptions::Action;

std::vector<std::string> Words(const std::string& line) {
  return absl::StrSplit(line, ' ', absl::SkipEmpty());
}

ControlOptions Parse(const std::string& line) {
  auto options = ParseControlOptions(Words(line));
  EXPECT_TRUE(options.ok()) << line << ": " << options.status();
  return options.value_or(ControlOptions{});
}

std::string Error(const std::string& line) {
  return std::string(ParseControlOptions(Words(line)).status().message());
}

TEST(IsControlCommand, OnlyIfTheFirstArgumentSaysSo) {
  EXPECT_TRUE(IsControlCommand({"status"}));
  EXPECT_TRUE(IsControlCommand({"drain", "a"}));
  EXPECT_FALSE(IsControlCommand({}));
  EXPECT_FALSE(IsControlCommand({"-np", "2", "status"}));
  EXPECT_FALSE(IsControlCommand({"./status"}));
}

TEST(ParseControlOptions, Status_TakesItsOptions) {
  EXPECT_EQ(Parse("status").action, Action::kStatus);
  EXPECT_EQ(Parse("status --job abc").job, "abc");
  const ControlOptions options = Parse("status --connect h:1 --token-file t");
  ASSERT_EQ(options.connect.size(), 1u);
  EXPECT_EQ(options.connect[0].host, "h");
  EXPECT_EQ(options.connect[0].port, "1");
  EXPECT_EQ(options.token_file, "t");
  EXPECT_EQ(Parse("status --help").action, Action::kShowHelp);
}

TEST(ParseControlOptions, Connect_TakesSeveralDaemons) {
  for (const char* action : {"status", "drain b"}) {
    const ControlOptions options =
        Parse(absl::StrCat(action, " --connect h:1,[fd00::1]:2 --token-file t"));
    ASSERT_EQ(options.connect.size(), 2u);
    EXPECT_EQ(options.connect[1].host, "fd00::1");
    EXPECT_EQ(options.connect[1].port, "2");
  }
  EXPECT_THAT(Error("status --connect h:1,i --token-file t"),
              HasSubstr("--connect: 'i' is not a host and a port"));
}

TEST(ParseControlOptions, Drain_HostStandsBeforeOrAfterTheOptions) {
  for (const char* line : {"drain b --grace 5 --job x", "drain --grace 5 --job x b"}) {
    const ControlOptions options = Parse(line);
    EXPECT_EQ(options.action, Action::kDrain);
    EXPECT_EQ(options.host, "b");
    EXPECT_EQ(options.grace, absl::Seconds(5));
    EXPECT_EQ(options.job, "x");
  }
  EXPECT_EQ(Parse("drain b").grace, absl::ZeroDuration());
}

TEST(ParseControlOptions, Mistakes_AreNamed) {
  EXPECT_THAT(Error("drain"), HasSubstr("which host shall leave?"));
  EXPECT_EQ(Error("drain a b"), "'b' is one argument too many");
  EXPECT_EQ(Error("status a"), "'a' is one argument too many");
  EXPECT_THAT(Error("status --grace 1"), HasSubstr("unknown option --grace"));
  EXPECT_EQ(Error("drain a --grace 0"), "--grace=0 must be >= 1");
  EXPECT_EQ(Error("status --connect h:1"), "--connect and --token-file need each other");
  EXPECT_EQ(Error("status --token-file f"), "--connect and --token-file need each other");
  EXPECT_THAT(Error("status --job a --connect h:1 --token-file t"), HasSubstr("exclude"));
}

TEST(ControlHelpText, ListsTheCommands) {
  EXPECT_THAT(ControlHelpText("drain"), HasSubstr("Usage: horovodrun drain HOST [options]"));
  EXPECT_THAT(ControlHelpText("drain"), HasSubstr("--grace"));
  EXPECT_THAT(ControlHelpText("status"), ::testing::Not(HasSubstr("--grace")));
}

}  // namespace
}  // namespace hvd::launcher::cli
