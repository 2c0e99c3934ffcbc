#include "base/os/usable_cores.h"

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace hvd::os {
namespace {

class CoresOfQuotaTest : public ::testing::Test {
 protected:
  CoresOfQuotaTest() { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_ = ::testing::TempDir() + "/cgroups";
};

TEST_F(CoresOfQuotaTest, NoQuota_IsZero) {
  Write("job/cpu.max", "max 100000\n");
  EXPECT_EQ(CoresOfQuota(root_, "0::/job\n"), 0);
  EXPECT_EQ(CoresOfQuota(root_, "0::/elsewhere\n"), 0);
  EXPECT_EQ(CoresOfQuota(root_, ""), 0);
}

TEST_F(CoresOfQuotaTest, Quota_IsRoundedDownButNotToNothing) {
  Write("job/cpu.max", "250000 100000\n");
  Write("small/cpu.max", "50000 100000\n");
  EXPECT_EQ(CoresOfQuota(root_, "0::/job\n"), 2);
  EXPECT_EQ(CoresOfQuota(root_, "0::/small\n"), 1);
}

TEST_F(CoresOfQuotaTest, QuotaOfAGroupAbove_CountsIfItIsLess) {
  Write("cpu.max", "800000 100000\n");
  Write("slice/cpu.max", "300000 100000\n");
  Write("slice/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(CoresOfQuota(root_, "0::/slice/job\n"), 3);
  EXPECT_EQ(CoresOfQuota(root_, "0::/\n"), 8);
}

TEST_F(CoresOfQuotaTest, Version1_IsTheGroupOfItsController) {
  Write("cpu,cpuacct/docker/cpu.cfs_quota_us", "200000\n");
  Write("cpu,cpuacct/docker/cpu.cfs_period_us", "50000\n");
  Write("memory/docker/cpu.cfs_quota_us", "50000\n");
  Write("memory/docker/cpu.cfs_period_us", "50000\n");
  const char groups[] = "5:memory:/docker\n4:cpu,cpuacct:/docker\n";
  EXPECT_EQ(CoresOfQuota(root_, groups), 4);
  Write("cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(CoresOfQuota(root_, groups), 0);
}

// A container that sees only its own part of the cgroup tree.
TEST_F(CoresOfQuotaTest, PathOfAnotherView_LeavesTheTopmostFolder) {
  Write("cpu.max", "200000 100000\n");
  EXPECT_EQ(CoresOfQuota(root_, "0::/system.slice/docker-1234.scope\n"), 2);
}

TEST(UsableCores, AffinityOfOneCore_IsOne) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_LE(UsableCores(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCores(), 1);
  EXPECT_EQ(HasShareOfCores(), sysconf(_SC_NPROCESSORS_ONLN) > 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(ThreadsOfWorker, CoresAreSharedAndNobodyGetsNone) {
  EXPECT_EQ(ThreadsOfWorker(8, 2), 4);
  EXPECT_EQ(ThreadsOfWorker(8, 3), 2);
  EXPECT_EQ(ThreadsOfWorker(2, 4), 1);
  EXPECT_EQ(ThreadsOfWorker(2, 0), 2);
}

}  // namespace
}  // namespace hvd::os
