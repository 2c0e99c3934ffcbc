#include "base/os/process_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

// Exits with 0 if a program that Process::Spawn starts has the original limit.
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

// Exits with 0 if this process can't leave a core file, but a process that it spawns can.
[[noreturn]] void ForbidAndSpawn() {
  rlimit limit = {};
  getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 512 << 10);
  setrlimit(RLIMIT_CORE, &limit);
  const std::string kilobytes_before = std::to_string(limit.rlim_cur >> 9);  // dash: of 512 bytes
  ForbidCoreFiles();
  getrlimit(RLIMIT_CORE, &limit);
  if (limit.rlim_cur > 1) _exit(1);
  SpawnOptions options;
  options.file = "/bin/dash";
  options.argv = {"dash", "-c", "test $(ulimit -Sc) = " + kilobytes_before};
  auto process = Process::Spawn(options);
  _exit(process.ok() && process->Wait().exit_code == 0 ? 0 : 2);
}

TEST(ForbidCoreFilesTest, ThisProcessLeavesNone_AChildAsBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ForbidAndSpawn(), ::testing::ExitedWithCode(0), "");
}

// Exits with 0 if a child's score never exceeds the maximum, and is not set if this process is
// exempt.
[[noreturn]] void AskForOomScores() {
  const auto set = [](const char* score) {
    return !(std::ofstream("/proc/self/oom_score_adj") << score << std::flush).fail();
  };
  if (!set("1000") || RaisedOomScore(100) != "1000") _exit(1);
  const bool may_be_exempt = set("-1000");  // requires a privilege
  _exit(may_be_exempt && !RaisedOomScore(100).empty() ? 2 : 0);
}

TEST(RaisedOomScoreTest, AtMostTheMaximum_AndExemptProcessesAreUnchanged) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AskForOomScores(), ::testing::ExitedWithCode(0), "");
}

// Exits with 0 if as many more files can be opened as requested, and the limit is not higher.
[[noreturn]] void AskForMore() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 40;
  setrlimit(RLIMIT_NOFILE, &limit);
  AllowMoreFiles(5);
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur != 40) _exit(1);
  if (AllowMoreFiles(200) != 200) _exit(4);
  for (int i = 0; i < 200; ++i) {
    if (fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) < 0) _exit(2);
  }
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= 300) _exit(3);
  limit.rlim_max = limit.rlim_cur;
  setrlimit(RLIMIT_NOFILE, &limit);
  _exit(AllowMoreFiles(5) == 0 ? 0 : 5);
}

TEST(AllowMoreFilesTest, AsManyAsAreAskedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AskForMore(), ::testing::ExitedWithCode(0), "");
}

TEST(CheckFilesTest, Few_AreNamed) {
  EXPECT_TRUE(CheckFiles().ok());
  // In a child, since the limit is that of a whole process.
  Process child = Process::Fork(
                      [] {
                        const rlimit few = {20, 20};
                        setrlimit(RLIMIT_NOFILE, &few);
                        const absl::Status status = CheckFiles();
                        return absl::StrContains(status.message(), "only 20 files") ? 0 : 1;
                      },
                      SIGKILL)
                      .value();
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(CheckStackTest, Little_IsNamed) {
  EXPECT_TRUE(CheckStack().ok());
  // In a child, since the limit is that of a whole process.
  Process child = Process::Fork(
                      [] {
                        const rlimit little = {64 << 10, 64 << 10};
                        setrlimit(RLIMIT_STACK, &little);
                        const absl::Status status = CheckStack();
                        return absl::StrContains(status.message(), "only 64 KiB here") ? 0 : 1;
                      },
                      SIGKILL)
                      .value();
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(CheckAddressSpaceTest, Little_IsNamed) {
  // In a child, since the limit is that of a whole process.
  Process child =
      Process::Fork(
          [] {
            const rlimit little = {800 << 20, 800 << 20};
            setrlimit(RLIMIT_AS, &little);
            const absl::Status status = CheckAddressSpace();
            return absl::StrContains(status.message(), "only 800 MiB of address space") ? 0 : 1;
          },
          SIGKILL)
          .value();
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(StatusOfTest, ThreadThatCantBeStarted_NamesLimits) {
  const std::system_error error(std::make_error_code(std::errc::resource_unavailable_try_again));
  EXPECT_TRUE(absl::IsResourceExhausted(StatusOf(error)));
  EXPECT_TRUE(absl::StrContains(StatusOf(error).message(), "pids.max")) << StatusOf(error);
  EXPECT_EQ(StatusOf(std::runtime_error("what")), absl::InternalError("what"));
  EXPECT_EQ(StatusOf(std::bad_alloc()), absl::ResourceExhaustedError("there is no memory left"));
}

TEST(CheckThreadsTest, Enough_Ok) { EXPECT_TRUE(CheckThreads().ok()); }

}  // namespace
}  // namespace hvd::os
