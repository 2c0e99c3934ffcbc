#include "collectives/hierarchical/host_reach.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "collectives/conformance/rank_group.h"
#include "collectives/hierarchical/on_hosts_testing.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/shm/shm_backend.h"
#include "gtest/gtest.h"

namespace hvd::collectives::hierarchical {
namespace {

constexpr int kUnable = 9;

TEST(HostReachTest, CanReach_Open_UntilItIsGone) {
  std::string name;
  {
    const HostReach reach = HostReach::Open();
    name = reach.name();
    EXPECT_TRUE(HostReach::CanReach(name));
  }
  EXPECT_FALSE(HostReach::CanReach(name));
  EXPECT_FALSE(HostReach::CanReach(""));
  EXPECT_FALSE(HostReach::CanReach(HostReach().name()));
}

// Ranks from `first_away` on have separate network namespaces, as in a clone of this machine, but
// all have the same host identity. Exits with 0 if all ranks have the communicator that `kind`
// names.
[[noreturn]] void ConnectCopies(const std::string& kind, int ranks, int first_away,
                                int ranks_of_a_host) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(kUnable);
  FakeHosts hosts{[&](int rank) {
                    // This runs on the rank's thread, and unshare() affects that thread only.
                    if (rank >= first_away && unshare(CLONE_NEWNET) != 0) _exit(kUnable);
                    return std::to_string(rank / ranks_of_a_host);
                  },
                  [](const std::string&) { return shm::MakeShmBackend(); },
                  inproc::MakeInprocBackend};
  conformance::RankGroup group(MakeBackendOnHosts(std::move(hosts)));
  group.Connect(ranks);
  bool as_wanted = !testing::Test::HasFailure();
  for (int rank = 0; rank < ranks; ++rank) {
    as_wanted &= group.at(rank).ToString().substr(0, kind.size()) == kind;
  }
  _exit(as_wanted ? 0 : 1);
}

class HostReachDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const pid_t child = fork();
    if (child == 0) _exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) GTEST_SKIP() << "no namespaces to be had here";
  }
};

TEST_F(HostReachDeathTest, Connect_ARankIsOnACopyOfTheHost_AllGoOverTheNetwork) {
  EXPECT_EXIT(ConnectCopies("inproc", 3, 2, 3), testing::ExitedWithCode(0), "");
}

TEST_F(HostReachDeathTest, Connect_AHostOfSeveralIsACopy_AllGoOverTheNetwork) {
  EXPECT_EXIT(ConnectCopies("inproc", 4, 3, 2), testing::ExitedWithCode(0), "");
}

TEST_F(HostReachDeathTest, Connect_NoCopy_SharesMemory) {
  EXPECT_EXIT(ConnectCopies("shm", 3, 3, 3), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hvd::collectives::hierarchical
