#include "agent/inspection/oom_counter.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace hvd::agent::inspection {
namespace {

class OomCounterTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* directory :
         {"/proc", "/proc/42", "/sys", "/sys/fs", "/sys/fs/cgroup", "/sys/fs/cgroup/job"}) {
      ASSERT_EQ(mkdir((root_ + directory).c_str(), 0700), 0);
    }
  }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ + path) << text;
  }

  const std::string root_ = [] {
    std::string name = testing::TempDir() + "/oomXXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
};

TEST_F(OomCounterTest, HasGrown_CounterOfCgroupGrows_IsTrue) {
  Write("/proc/42/cgroup", "4:memory:/old\n0::/job\n");
  Write("/sys/fs/cgroup/job/memory.events", "oom 1\noom_kill 1\noom_group_kill 0\n");
  const OomCounter counter(42, root_);
  EXPECT_FALSE(counter.HasGrown());
  Write("/sys/fs/cgroup/job/memory.events", "oom 2\noom_kill 2\noom_group_kill 0\n");
  EXPECT_TRUE(counter.HasGrown());
}

TEST_F(OomCounterTest, HasGrown_NoCgroupCounter_LooksAtTheSystem) {
  Write("/proc/42/cgroup", "0::/\n");
  Write("/proc/vmstat", "nr_free 5\noom_kill 7\n");
  const OomCounter counter(42, root_);
  EXPECT_FALSE(counter.HasGrown());
  Write("/proc/vmstat", "nr_free 5\noom_kill 8\n");
  EXPECT_TRUE(counter.HasGrown());
}

TEST_F(OomCounterTest, HasGrown_NoCounterAtAll_IsFalse) {
  EXPECT_FALSE(OomCounter(42, root_).HasGrown());
}

}  // namespace
}  // namespace hvd::agent::inspection
