#include "base/process_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/process.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

// Exits with 0 if a program that Process::Spawn starts has the limit that was there before.
[[noreturn]] void RaiseAndSpawn() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 128;
  setrlimit(RLIMIT_NOFILE, &limit);
  AllowManyFiles();
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur != limit.rlim_max) _exit(1);
  for (int i = 0; i < 200; ++i) {
    if (fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) < 0) _exit(1);
  }
  SpawnOptions options;
  options.file = "/bin/sh";
  options.argv = {"sh", "-c", "test $(ulimit -Sn) = 128"};
  auto process = Process::Spawn(options);
  _exit(process.ok() && process->Wait().exit_code == 0 ? 0 : 2);
}

TEST(AllowManyFilesTest, ThisProcessHasTheHardLimit_AChildTheOneBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(RaiseAndSpawn(), ::testing::ExitedWithCode(0), "");
}

TEST(CheckThreadsTest, Enough_Ok) { EXPECT_TRUE(CheckThreads().ok()); }

}  // namespace
}  // namespace hvd
