#include "launcher/agent/liveness_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

size_t CountOf(const char* directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST(LivenessWatchTest, HolderKilled_OnDeathIsCalled) {
  absl::Notification died;
  const auto watch = LivenessWatch::Start([&] { died.Notify(); }).value();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    absl::StatusOr<LivenessPage> page = LivenessPage::Map(Fd(dup(watch->page_fd())));
    if (!page.ok() || !page->HoldForever().ok()) _exit(1);
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(died.HasBeenNotified());
  kill(child, SIGKILL);
  died.WaitForNotification();
  waitpid(child, nullptr, 0);
  close(ready[0]);
}

TEST(LivenessWatchTest, Destructor_NeverHeld_LeavesNeitherThreadNorDescriptor) {
  const size_t descriptors = CountOf("/proc/self/fd");
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(LivenessWatch::Start([] { ADD_FAILURE() << "nobody died"; }).ok());
  }
  EXPECT_EQ(CountOf("/proc/self/fd"), descriptors);
  EXPECT_EQ(CountOf("/proc/self/task"), 1u);
}

}  // namespace
}  // namespace hvd
