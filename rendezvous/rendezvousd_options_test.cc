#include "rendezvous/rendezvousd_options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/version.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

RendezvousdCommand Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "horovod-rendezvousd");
  return ParseRendezvousdCommand(static_cast<int>(arguments.size()), arguments.data());
}

// One line that contains `expected`, and exit code 2.
void ExpectRefusal(const RendezvousdCommand& command, const std::string& expected) {
  EXPECT_FALSE(command.options.has_value());
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_EQ(std::count(command.text.begin(), command.text.end(), '\n'), 1) << command.text;
  EXPECT_NE(command.text.find(expected), std::string::npos) << command.text;
}

TEST(RendezvousdOptionsTest, AllOptions) {
  const auto command = Parse({"--listen", "10.0.0.1:0", "--listen=[::1]:7", "--np", "3", "--hosts",
                              "h1:2,h2:1", "--credentials-out", "f"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_EQ(command.options->listen, (std::vector<std::string>{"10.0.0.1:0", "[::1]:7"}));
  EXPECT_EQ(command.options->np, 3);
  ASSERT_EQ(command.options->hosts.size(), 2u);
  EXPECT_EQ(command.options->hosts[1].host, "h2");
  EXPECT_EQ(command.options->hosts[1].slots, 1);
  EXPECT_EQ(command.options->credentials_out, "f");
}

TEST(RendezvousdOptionsTest, WithoutHosts_AnybodyMayCome) {
  const auto command = Parse({"--listen", "10.0.0.1:0", "--np", "3", "--credentials-out", "f"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_TRUE(command.options->hosts.empty());
}

TEST(RendezvousdOptionsTest, HelpAndVersion_SucceedOnStdout) {
  const auto help = Parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.text.find("hvd.pb.Credentials"), std::string::npos);
  const auto version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.text, std::string(kVersion) + "\n");
}

TEST(RendezvousdOptionsTest, MissingOrUnknownOption_IsNamed) {
  ExpectRefusal(Parse({}), "--listen");
  ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", "1"}), "--credentials-out");
  ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", "1", "--credentials-out", "f", "--x"}),
                "--x");
}

TEST(RendezvousdOptionsTest, BadNp_IsRefused) {
  for (const char* np : {"0", "-1", "x", "", "99999999999"}) {
    ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", np, "--credentials-out", "f"}), "--np");
  }
}

TEST(RendezvousdOptionsTest, BadHosts_AreRefused) {
  for (const char* hosts :
       {"", "h", "h:", ":2", "h:0", "h:-1", "h:x", "h:2,", "h:1,h:2", "h:70000"}) {
    ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", "1", "--credentials-out", "f",
                         (std::string("--hosts=") + hosts).c_str()}),
                  "--hosts");
  }
}

TEST(RendezvousdOptionsTest, MoreWorkersThanSlots_IsRefused) {
  ExpectRefusal(
      Parse({"--listen", "1.1.1.1:0", "--np", "4", "--credentials-out", "f", "--hosts", "a:1,b:2"}),
      "3 slots");
}

}  // namespace
}  // namespace hvd
