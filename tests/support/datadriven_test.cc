#include "tests/support/datadriven.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;

std::string Echo(Command& command) {
  return absl::StrCat(command.name(), ": ", absl::StrJoin(command.positional(), ","));
}

TEST(DataDrivenTest, Parse_PositionalNamedAndQuoted) {
  absl::StatusOr<Command> command =
      Command::Parse("exit  3 code=7 tail=\"two words\" after=1500ms core");
  ASSERT_THAT(command, IsOk());
  EXPECT_EQ(command->name(), "exit");
  EXPECT_THAT(command->positional(), ElementsAre("3", "core"));
  EXPECT_EQ(command->Number("code"), 7);
  EXPECT_EQ(command->Text("tail"), "two words");
  EXPECT_EQ(command->Time("after", absl::ZeroDuration()), absl::Milliseconds(1500));
  EXPECT_EQ(command->Number("signal", 9), 9);
  EXPECT_TRUE(command->Has("core"));
  EXPECT_FALSE(command->Has("oom"));
  EXPECT_EQ(command->error(), "");
}

TEST(DataDrivenTest, Parse_BadLines_AreErrors) {
  EXPECT_THAT(Command::Parse("exit tail=\"open"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Command::Parse("exit a=1 a=2"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Command::Parse(""), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DataDrivenTest, Error_TellsUnknownAndMalformedArguments) {
  absl::StatusOr<Command> unknown = Command::Parse("exit cod=7");
  unknown->Number("code");
  EXPECT_EQ(unknown->error(), "unknown argument cod");
  absl::StatusOr<Command> malformed = Command::Parse("exit code=x");
  EXPECT_EQ(malformed->Number("code", 5), 5);
  EXPECT_EQ(malformed->error(), "code is not a number");
}

TEST(DataDrivenTest, RunScript_RightOutput_IsUnchanged) {
  const std::string script = "# comment\nfoo 1\nbar\n----\nfoo: 1\nbar: \n\nbaz\n----\nbaz: \n";
  EXPECT_EQ(RunScript(script, Echo), script);
}

TEST(DataDrivenTest, RunScript_WrongOutput_IsReplaced) {
  EXPECT_EQ(RunScript("foo 1\n----\nold\nolder\n\nbaz\n----\n", Echo),
            "foo 1\n----\nfoo: 1\n\nbaz\n----\nbaz: \n");
}

TEST(DataDrivenTest, RunScript_NoDivider_IsAdded) {
  EXPECT_EQ(RunScript("foo 1\n", Echo), "foo 1\n----\nfoo: 1\n");
}

TEST(DataDrivenTest, RunScript_BadCommand_ShowsInTheOutput) {
  EXPECT_EQ(RunScript("foo a=1\n----\n", Echo),
            "foo a=1\n----\nfoo: \nerror: unknown argument a: foo a=1\n");
}

}  // namespace
}  // namespace hvd
