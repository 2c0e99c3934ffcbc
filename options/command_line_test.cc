#include "options/command_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::options {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<FlagSpec>& Flags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {"--num-proc", {"-np", "--num-proc"}, true, ""},
      {"--hosts", {"-H", "--hosts"}, true, ""},
      {"--hostfile", {"-hostfile", "--hostfile"}, true, ""},
      {"--ssh-port", {"-p", "--ssh-port"}, true, ""},
      {"--prefix-timestamp", {"-prefix-timestamp", "--prefix-timestamp"}, false, ""},
      {"--help", {"-h", "--help"}, false, ""},
      {"--verbose", {"--verbose"}, false, ""},
      {"--network-interface", {"--network-interface"}, true, ""},
      {"--network-interfaces", {"--network-interfaces"}, true, ""},
      {"--min-np", {"--min-np", "--min-num-proc"}, true, "no elastic jobs yet"},
      {"-x", {"-x"}, true, ""},
      {"--hosting", {"--hosting"}, true, "nobody hosts", 0, /*exact=*/true},
  };
  return *flags;
}

SplitCommandLine Split(const std::vector<std::string>& args) {
  auto split = SplitArguments(Flags(), args, "horovodrun");
  EXPECT_TRUE(split.ok()) << split.status();
  return split.value_or(SplitCommandLine{});
}

std::string Error(const std::vector<std::string>& args) {
  auto split = SplitArguments(Flags(), args, "horovodrun");
  EXPECT_EQ(split.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(split.status().message());
}

TEST(SplitArguments, SpellingsOfOneFlagBecomeItsName) {
  EXPECT_THAT(Split({"-np", "2"}).options, ElementsAre("--num-proc=2"));
  EXPECT_THAT(Split({"-np=2"}).options, ElementsAre("--num-proc=2"));
  EXPECT_THAT(Split({"--num-proc", "2"}).options, ElementsAre("--num-proc=2"));
  EXPECT_THAT(Split({"--num-proc=2"}).options, ElementsAre("--num-proc=2"));
  EXPECT_THAT(Split({"-p22"}).options, ElementsAre("--ssh-port=22"));
  EXPECT_THAT(Split({"-hostfile", "f"}).options, ElementsAre("--hostfile=f"));
  EXPECT_THAT(Split({"-prefix-timestamp"}).options, ElementsAre("--prefix-timestamp"));
}

TEST(SplitArguments, ShortOptionsKeepEqualsSignsInTheirValues) {
  EXPECT_THAT(Split({"-x", "A=b=c"}).options, ElementsAre("-xA=b=c"));
  EXPECT_THAT(Split({"-xA=b"}).options, ElementsAre("-xA=b"));
  EXPECT_THAT(Split({"-Ha:1,b:2"}).options, ElementsAre("--hosts=a:1,b:2"));
}

TEST(SplitArguments, CommandBeginsAtFirstNonOption) {
  const SplitCommandLine split = Split({"-np", "2", "python", "train.py", "--verbose", "-np"});
  EXPECT_THAT(split.options, ElementsAre("--num-proc=2"));
  EXPECT_THAT(split.command, ElementsAre("python", "train.py", "--verbose", "-np"));
}

TEST(SplitArguments, DoubleDashEndsOptions) {
  EXPECT_THAT(Split({"--verbose", "--", "-weird", "--"}).command, ElementsAre("-weird", "--"));
  EXPECT_THAT(Split({"--"}).command, IsEmpty());
}

TEST(SplitArguments, UnambiguousBeginningIsEnough) {
  EXPECT_THAT(Split({"--verb", "--num", "3"}).options, ElementsAre("--verbose", "--num-proc=3"));
  EXPECT_THAT(Split({"-n", "3"}).options, ElementsAre("--num-proc=3"));
  EXPECT_THAT(Split({"--network-interface", "a"}).options, ElementsAre("--network-interface=a"));
  EXPECT_EQ(Error({"--host", "a"}), "option --host is ambiguous: --hostfile, --hosts");
}

TEST(SplitArguments, NegativeNumberIsAValue) {
  EXPECT_THAT(Split({"-np", "-1", "cmd"}).options, ElementsAre("--num-proc=-1"));
}

TEST(SplitArguments, MissingOrUnwantedValueIsNamed) {
  EXPECT_EQ(Error({"-np"}), "-np needs a value");
  EXPECT_EQ(Error({"-np", "--verbose"}), "-np needs a value");
  EXPECT_EQ(Error({"-H", ""}), "-H needs a value, not an empty one");
  EXPECT_EQ(Error({"--hosts="}), "--hosts needs a value, not an empty one");
  EXPECT_EQ(Error({"--verbose=1"}), "--verbose takes no value");
}

TEST(SplitArguments, UnknownOptionGetsASuggestion) {
  EXPECT_EQ(Error({"--nm-proc", "2"}), "unknown option --nm-proc; did you mean --num-proc?");
  EXPECT_EQ(Error({"--hostsfile=x"}), "unknown option --hostsfile; did you mean --hostfile?");
  EXPECT_EQ(Error({"-pn", "2"}), "unknown option -pn; did you mean -np?");
  EXPECT_EQ(Error({"--zzzzzzzz"}), "unknown option --zzzzzzzz; horovodrun --help lists all");
}

TEST(SplitArguments, UnavailableOptionSaysWhy) {
  EXPECT_EQ(Error({"--min-np", "2"}), "--min-np is not available: no elastic jobs yet");
  EXPECT_THAT(Error({"--min-n"}), HasSubstr("is not available"));
}

TEST(SplitArguments, ExactFlagIsMeantByItsWholeNameOnly) {
  EXPECT_EQ(Error({"--hosting", "a"}), "--hosting is not available: nobody hosts");
  EXPECT_EQ(Error({"--hostin", "a"}), "unknown option --hostin; did you mean --hosts?");
}

}  // namespace
}  // namespace hvd::options
