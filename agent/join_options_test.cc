#include "agent/join_options.h"

#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

JoinCommand Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "horovod-agent");
  return ParseJoinCommand(static_cast<int>(arguments.size()), arguments.data());
}

TEST(JoinOptionsTest, Parse_OnlyWhatIsNeeded_HasDefaults) {
  const JoinCommand command =
      Parse({"--join", "node1:4000", "--token-file", "t", "--", "python", "train.py"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_EQ(command.options->daemons.at(0).host, "node1");
  EXPECT_EQ(command.options->daemons.at(0).port, "4000");
  EXPECT_EQ(command.options->token_file, "t");
  EXPECT_EQ(command.options->slots, 1u);
  EXPECT_EQ(command.options->host, "");
  EXPECT_EQ(command.options->machine, "");
  EXPECT_EQ(command.options->adopt, std::nullopt);
  EXPECT_EQ(command.options->grace, absl::Seconds(30));
  EXPECT_EQ(command.options->start_timeout, absl::Seconds(60));
  EXPECT_EQ(command.options->command, (std::vector<std::string>{"python", "train.py"}));
}

TEST(JoinOptionsTest, Parse_Everything_IsTaken) {
  const JoinCommand command = Parse({"--join",
                                     "[fd00::1]:4000",
                                     "--token-file",
                                     "t",
                                     "--slots",
                                     "8",
                                     "--host",
                                     "n7",
                                     "--machine",
                                     "rack1/n7",
                                     "--grace",
                                     "0",
                                     "--start-timeout",
                                     "5",
                                     "--network-interfaces",
                                     "eth0,10.0.0.0/8",
                                     "--",
                                     "sh",
                                     "-c",
                                     "a -- b",
                                     "--",
                                     "--slots"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_EQ(command.options->daemons.at(0).host, "fd00::1");
  EXPECT_EQ(command.options->slots, 8u);
  EXPECT_EQ(command.options->host, "n7");
  EXPECT_EQ(command.options->machine, "rack1/n7");
  EXPECT_EQ(command.options->grace, absl::ZeroDuration());
  EXPECT_EQ(command.options->start_timeout, absl::Seconds(5));
  EXPECT_EQ(command.options->networks, (std::vector<std::string>{"eth0", "10.0.0.0/8"}));
  EXPECT_EQ(command.options->command,
            (std::vector<std::string>{"sh", "-c", "a -- b", "--", "--slots"}));
}

TEST(JoinOptionsTest, Parse_SeveralDaemons) {
  const JoinCommand command =
      Parse({"--join", "a:1,[fd00::2]:2", "--token-file", "t", "--", "true"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  ASSERT_EQ(command.options->daemons.size(), 2u);
  EXPECT_EQ(command.options->daemons[1].host, "fd00::2");
  EXPECT_EQ(command.options->daemons[1].port, "2");
  EXPECT_EQ(Parse({"--join", "a:1,b", "--token-file", "t", "--", "true"}).exit_code, 2);
}

TEST(JoinOptionsTest, Parse_Adopt_TakesNoCommand) {
  const JoinCommand command = Parse({"--join", "a:1", "--token-file", "t", "--adopt", "4711"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_EQ(command.options->adopt, 4711);
}

TEST(JoinOptionsTest, Parse_HelpAndVersion_ExitWithZero) {
  EXPECT_EQ(Parse({"--help"}).exit_code, 0);
  EXPECT_TRUE(absl::StrContains(Parse({"--help"}).text, "--token-file"));
  EXPECT_TRUE(absl::StartsWith(Parse({"--version"}).text, "horovod-agent "));
}

TEST(JoinOptionsTest, Parse_BadInput_IsOneLineAndExitCodeTwo) {
  const std::string long_name(256, 'n');
  const struct {
    std::vector<const char*> arguments;
    const char* expected;
  } cases[] = {
      {{}, "--join"},
      {{"--join", "a:1", "--", "x"}, "--token-file is missing"},
      {{"--join", "a", "--token-file", "t", "--", "x"}, "not a host and a port"},
      {{"--join", "a:b", "--token-file", "t", "--", "x"}, "not a host and a port"},
      {{"--join", "a:0", "--token-file", "t", "--", "x"}, "not a host and a port"},
      {{"--join", "a:65536", "--token-file", "t", "--", "x"}, "not a host and a port"},
      {{"--join", ":1", "--token-file", "t", "--", "x"}, "not a host and a port"},
      {{"--join", "fd00::1", "--token-file", "t", "--", "x"}, "not a host and a port"},
      {{"--join", "a:1", "--token-file", "t", "--slots", "0", "--", "x"}, "--slots=0"},
      {{"--join", "a:1", "--token-file", "t", "--slots", "-3", "--", "x"}, "--slots=-3"},
      {{"--join", "a:1", "--token-file", "t", "--slots", "two", "--", "x"}, "two"},
      {{"--join", "a:1", "--token-file", "t", "--grace", "-1", "--", "x"}, "--grace: '-1'"},
      {{"--join", "a:1", "--token-file", "t", "--start-timeout", "0", "--", "x"},
       "--start-timeout: '0'"},
      {{"--join", "a:1", "--token-file", "t", "--host", "a\nb", "--", "x"}, "'a\\nb' is no name"},
      {{"--join", "a:1", "--token-file", "t", "--host", "a b", "--", "x"}, "'a b' is no name"},
      {{"--join", "a:1", "--token-file", "t", "--machine", "a b", "--", "x"},
       "--machine: 'a b' is no name"},
      {{"--join", "a:1", "--token-file", "t", "--host", "a\xff", "--", "x"}, "'a\\xff' is no name"},
      {{"--join", "a:1", "--token-file", "t", "--host", long_name.c_str(), "--", "x"},
       "at most 255"},
      {{"--join", "a:1", "--token-file", "t", "--adopt", "x"}, "--adopt: 'x'"},
      {{"--join", "a:1", "--token-file", "t", "--adopt", "0"}, "--adopt=0"},
      {{"--join", "a:1", "--token-file", "t", "--adopt", "7", "--", "x"}, "there is no command"},
      {{"--join", "a:1", "--token-file", "t", "--adopt", "7", "--slots", "2"}, "--slots is 1"},
      {{"--join", "a:1", "--token-file", "t", "--adopt", "7", "--elastic-restart"},
       "--elastic-restart starts a command"},
      {{"--join", "a:1", "--token-file", "t", "--adopt", "7", "--end-with-stdin"},
       "no --end-with-stdin"},
      {{"--join", "a:1", "--token-file", "t", "--adopt", "7", "--worker-stdin", "x"},
       "no --worker-stdin"},
      {{"--join", "a:1", "--token-file", "t"}, "no command"},
      {{"--join", "a:1", "--token-file", "t", "--"}, "no command"},
      {{"--join", "a:1", "--token-fil", "t", "--slot", "x", "--", "x"}, "--slots: 'x'"},
      {{"--join", "a:1", "--tokenfile", "t", "--", "x"}, "did you mean --token-file?"},
      {{"--join", "a:1", "--token-file", "t", "--bogus", "--", "x"}, "--bogus"},
  };
  for (const auto& bad : cases) {
    const JoinCommand command = Parse(bad.arguments);
    EXPECT_FALSE(command.options.has_value()) << bad.expected;
    EXPECT_EQ(command.exit_code, 2) << bad.expected;
    EXPECT_TRUE(absl::StrContains(command.text, bad.expected)) << command.text;
    EXPECT_TRUE(absl::StartsWith(command.text, "horovod-agent: ")) << command.text;
    EXPECT_EQ(command.text.find('\n'), command.text.size() - 1) << command.text;
  }
}

}  // namespace
}  // namespace hvd::agent
