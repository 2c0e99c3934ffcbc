#include "base/os/liveness_watch.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

size_t CountOf(const char* directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST(LivenessWatchTest, HolderKilled_OnDeathIsCalled) {
  Pipe tell = MakePipe().value();
  Pipe ready = MakePipe().value();
  const pid_t parent = getpid();
  const pid_t child = fork();  // before there is a thread
  if (child == 0) {
    int page_fd = -1;
    if (read(tell.read.get(), &page_fd, sizeof(page_fd)) != sizeof(page_fd)) _exit(1);
    const std::string path = absl::StrCat("/proc/", parent, "/fd/", page_fd);
    absl::StatusOr<LivenessPage> page = LivenessPage::Map(Fd(open(path.c_str(), O_RDWR)));
    if (!page.ok() || !page->HoldForever().ok()) _exit(1);
    (void)!write(ready.write.get(), "x", 1);
    for (;;) pause();
  }
  ready.write.reset();
  absl::Notification died;
  const auto watch = LivenessWatch::Start([&] { died.Notify(); }).value();
  const int page_fd = watch->page_fd();
  ASSERT_EQ(write(tell.write.get(), &page_fd, sizeof(page_fd)), sizeof(page_fd));
  char byte = 0;
  ASSERT_EQ(read(ready.read.get(), &byte, 1), 1);
  EXPECT_FALSE(died.HasBeenNotified());
  kill(child, SIGKILL);
  died.WaitForNotification();
  waitpid(child, nullptr, 0);
}

TEST(LivenessWatchTest, Destructor_NeverHeld_LeavesNeitherThreadNorDescriptor) {
  const size_t descriptors = CountOf("/proc/self/fd");
  const size_t threads = CountOf("/proc/self/task");
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(LivenessWatch::Start([] { ADD_FAILURE() << "nobody died"; }).ok());
  }
  EXPECT_EQ(CountOf("/proc/self/fd"), descriptors);
  // The kernel lists a thread for a moment longer than it can be joined.
  while (CountOf("/proc/self/task") > threads) std::this_thread::yield();
}

}  // namespace
}  // namespace hvd::os
