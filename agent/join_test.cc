#include "agent/join.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "agent/testing/joining_program.h"
#include "base/os/host_identity.h"
#include "base/version.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

class JoinTest : public testing::Test {
 protected:
  JoinTest() {
    options_.daemons = {{"127.0.0.1", "4000"}};
    options_.token_file = token_.path();
    options_.slots = 3;
    options_.command = {"python", "train.py"};
  }

  const TokenFile token_{"join_test_token.txt"};
  JoinOptions options_;
};

TEST_F(JoinTest, MakeJoinBootstrap_UsesTheLocalHost) {
  ASSERT_EQ(setenv("JOIN_TEST", "here", 1), 0);
  options_.networks = {"eth0"};
  const pb::AgentBootstrap bootstrap = MakeJoinBootstrap(options_).value();
  EXPECT_EQ(bootstrap.version(), kVersion);
  EXPECT_EQ(bootstrap.slots(), 3u);
  EXPECT_EQ(bootstrap.credentials().token(), token_.token());
  ASSERT_EQ(bootstrap.daemon_addresses_size(), 1);
  EXPECT_EQ(bootstrap.daemon_addresses(0), "127.0.0.1:4000");
  EXPECT_EQ(bootstrap.networks(0), "eth0");
  EXPECT_EQ(bootstrap.command().argv(1), "train.py");
  EXPECT_EQ(bootstrap.command().environment().at("JOIN_TEST"), "here");
  EXPECT_EQ(bootstrap.command().environment().at("PYTHONUNBUFFERED"), "1");
  char directory[4096];
  EXPECT_EQ(bootstrap.command().working_directory(), getcwd(directory, sizeof(directory)));
}

TEST_F(JoinTest, MakeJoinBootstrap_Name_IsTheFirstThereIs) {
  ASSERT_EQ(unsetenv("SLURMD_NODENAME"), 0);
  char own[256];
  ASSERT_EQ(gethostname(own, sizeof(own)), 0);
  EXPECT_EQ(MakeJoinBootstrap(options_)->host(), own);
  ASSERT_EQ(setenv("SLURMD_NODENAME", "slurm7", 1), 0);
  EXPECT_EQ(MakeJoinBootstrap(options_)->host(), "slurm7");
  ASSERT_EQ(setenv("SLURMD_NODENAME", "slurm\n7", 1), 0);
  EXPECT_TRUE(absl::StartsWith(MakeJoinBootstrap(options_).status().message(),
                               "SLURMD_NODENAME, or this machine's name: 'slurm\\n7' is no name"));
  options_.host = "mine";
  EXPECT_EQ(MakeJoinBootstrap(options_)->host(), "mine");
  ASSERT_EQ(unsetenv("SLURMD_NODENAME"), 0);
}

TEST_F(JoinTest, MakeJoinBootstrap_Machine_IsThisOneUnlessNamed) {
  const std::string own = MakeJoinBootstrap(options_)->machine();
  EXPECT_TRUE(absl::StartsWith(own, os::HostIdentity() + "/")) << own;
  options_.host = "another";
  EXPECT_EQ(MakeJoinBootstrap(options_)->machine(), own);
  options_.machine = "mine";
  EXPECT_EQ(MakeJoinBootstrap(options_)->machine(), "mine");
}

TEST_F(JoinTest, MakeJoinBootstrap_Addresses_AreNumeric) {
  options_.daemons = {{"localhost", "80"}};
  const pb::AgentBootstrap bootstrap = MakeJoinBootstrap(options_).value();
  for (const std::string& address : bootstrap.daemon_addresses()) {
    EXPECT_TRUE(address == "127.0.0.1:80" || address == "[::1]:80") << address;
  }
  options_.daemons = {{"::1", "80"}};
  EXPECT_EQ(MakeJoinBootstrap(options_)->daemon_addresses(0), "[::1]:80");
}

TEST_F(JoinTest, DaemonName_OneAddressBehindAName_IsFollowed) {
  pb::AgentBootstrap bootstrap;
  bootstrap.add_daemon_addresses("10.0.0.1:80");
  options_.daemons = {{"training", "80"}};
  EXPECT_EQ(DaemonName(options_, bootstrap), "training:80");
  options_.daemons = {{"10.0.0.1", "80"}};
  EXPECT_EQ(DaemonName(options_, bootstrap), "");
  options_.daemons = {{"fd00::1", "80"}};
  EXPECT_EQ(DaemonName(options_, bootstrap), "");
  options_.daemons = {{"training", "80"}};
  bootstrap.add_daemon_addresses("10.0.0.2:80");
  EXPECT_EQ(DaemonName(options_, bootstrap), "");
}

TEST_F(JoinTest, DaemonName_SeveralDaemons_AreAllCandidatesOfEachConnection) {
  options_.daemons = {{"10.0.0.1", "80"}, {"localhost", "81"}, {"10.0.0.1", "80"}};
  const pb::AgentBootstrap bootstrap = MakeJoinBootstrap(options_).value();
  EXPECT_EQ(bootstrap.daemon_addresses(0), "10.0.0.1:80");
  EXPECT_GE(bootstrap.daemon_addresses_size(), 2);
  EXPECT_TRUE(absl::StartsWith(DaemonName(options_, bootstrap), "10.0.0.1:80,")) << "and localhost";
}

TEST_F(JoinTest, MakeJoinBootstrap_UnknownHost_IsNamed) {
  options_.daemons[0].host = "no-such-host.invalid";
  const absl::Status status = MakeJoinBootstrap(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "no-such-host.invalid")) << status;
}

TEST_F(JoinTest, MakeJoinBootstrap_NoTokenFile_IsNamed) {
  options_.token_file = "/no/such/file";
  options_.start_timeout = absl::ZeroDuration();
  EXPECT_TRUE(absl::StrContains(MakeJoinBootstrap(options_).status().message(), "/no/such/file"));
}

}  // namespace
}  // namespace hvd::agent
