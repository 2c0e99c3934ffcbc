#include "base/os/liveness_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

using End = LivenessPage::End;

// The action of a child after it has taken the lock of the page on its stdin; it prints "h" when it
// is done. It waits for its end without reading a clock.
int RunHolder(const std::string& what) {
  auto page = LivenessPage::Map(Fd(dup(STDIN_FILENO)));
  if (!page.ok() || !page->HoldForever().ok()) return 1;
  if (what == "busy") page->SetBusy(true);
  if (what == "busy in a fork") {
    page->SetBusy(true);
    const pid_t child = fork();
    if (child == 0) page->SetBusy(false);
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  if (what == "child executes") {
    const pid_t child = fork();
    if (child == 0) execl("/bin/true", "true", nullptr);
    waitpid(child, nullptr, 0);
  }
  if (what == "exec") execl("/bin/sh", "sh", "-c", "printf h; exec sleep 1000", nullptr);
  if (what == "fork" && fork() != 0) {
    while (true) pause();
  }
  if (what == "fork and end") {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  if (write(STDOUT_FILENO, "h", 1) != 1) return 1;
  if (what == "exit") return 0;
  while (true) pause();
}

// A page with a child that holds it.
class LivenessPageTest : public ::testing::Test {
 protected:
  ~LivenessPageTest() override {
    if (child_.ok() && child_->pid() != 0) child_->SignalGroup(SIGKILL);
  }

  // Returns when the child has done `what`.
  void StartHolder(const std::string& what) {
    Pipe pipe = MakePipe().value();
    SpawnOptions options;
    options.file = "/proc/self/exe";
    options.argv = {"holder", what};
    options.stdin_fd = page_.fd();
    options.stdout_fd = pipe.write.get();
    child_.emplace(Process::Spawn(options).value());
    pipe.write.reset();
    char byte = 0;
    ASSERT_EQ(ReadSome(pipe.read.get(), &byte, 1).bytes, 1u);
  }

  std::future<End> AwaitDeath() {
    return std::async(std::launch::async, [this] { return page_.AwaitDeath(); });
  }

  LivenessPage page_ = LivenessPage::Create().value();
  absl::StatusOr<Process> child_ = absl::UnknownError("not started");
};

TEST_F(LivenessPageTest, AwaitDeath_HolderKilled_Died) {
  std::future<End> end = AwaitDeath();
  StartHolder("hold");
  child_->Signal(SIGKILL);
  EXPECT_EQ(end.get(), End::kDied);
}

TEST_F(LivenessPageTest, AwaitDeath_HolderDeadBefore_Died) {
  StartHolder("hold");
  child_->Signal(SIGKILL);
  child_->Wait();
  EXPECT_EQ(page_.AwaitDeath(), End::kDied);
  EXPECT_EQ(page_.AwaitDeath(), End::kDied);
}

TEST_F(LivenessPageTest, AwaitDeath_HolderExits_Died) {
  StartHolder("exit");
  EXPECT_EQ(page_.AwaitDeath(), End::kDied);
}

TEST_F(LivenessPageTest, AwaitDeath_HolderBecomesAnotherProgram_Died) {
  StartHolder("exec");
  EXPECT_EQ(page_.AwaitDeath(), End::kDied);
  EXPECT_FALSE(child_->PeekExit().has_value());
}

TEST_F(LivenessPageTest, AwaitDeath_HoldersForkedChildLivesOn_Died) {
  StartHolder("fork");
  child_->Signal(SIGKILL);
  EXPECT_EQ(page_.AwaitDeath(), End::kDied);
}

TEST_F(LivenessPageTest, AwaitDeath_HoldersForkedChildDies_HolderLives) {
  StartHolder("fork and end");
  std::future<End> end = AwaitDeath();
  page_.Cancel();
  EXPECT_EQ(end.get(), End::kCancelled);
}

TEST_F(LivenessPageTest, AwaitDeath_HoldersForkedChildBecomesAnotherProgram_HolderLives) {
  StartHolder("child executes");
  std::future<End> end = AwaitDeath();
  page_.Cancel();
  EXPECT_EQ(end.get(), End::kCancelled);
}

TEST_F(LivenessPageTest, Busy_HolderSaysSo_StaysAfterItsDeath) {
  EXPECT_FALSE(page_.busy());
  StartHolder("busy");
  EXPECT_TRUE(page_.busy());
  child_->Signal(SIGKILL);
  EXPECT_EQ(page_.AwaitDeath(), End::kDied);
  EXPECT_TRUE(page_.busy());
}

TEST_F(LivenessPageTest, Busy_ForkOfTheHolderSaysNo_Stays) {
  StartHolder("busy in a fork");
  EXPECT_TRUE(page_.busy());
}

TEST_F(LivenessPageTest, AwaitDeath_CancelledWhileHeld_Cancelled) {
  StartHolder("hold");
  std::future<End> end = AwaitDeath();
  page_.Cancel();
  EXPECT_EQ(end.get(), End::kCancelled);
}

TEST_F(LivenessPageTest, AwaitDeath_CancelledBeforeAnybodyHeld_NeverHeld) {
  std::future<End> end = AwaitDeath();
  page_.Cancel();
  EXPECT_EQ(end.get(), End::kNeverHeld);
  EXPECT_EQ(page_.AwaitDeath(), End::kNeverHeld);
}

// Cancels at every moment of a wait, to detect a lost wake-up.
TEST_F(LivenessPageTest, Cancel_RacesWithTheWait_EndsIt) {
  for (int i = 0; i < 2000; ++i) {
    LivenessPage page = LivenessPage::Create().value();
    std::thread waiter([&] { EXPECT_EQ(page.AwaitDeath(), End::kNeverHeld); });
    page.Cancel();
    waiter.join();
  }
}

TEST_F(LivenessPageTest, HoldForever_PageIsHeld_IsRefused) {
  StartHolder("hold");
  EXPECT_EQ(page_.HoldForever().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LivenessPageTest, HoldForever_HolderIsDead_IsRefused) {
  StartHolder("exit");
  EXPECT_EQ(page_.AwaitDeath(), End::kDied);
  EXPECT_EQ(page_.HoldForever().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LivenessPageTest, Map_NotALivenessPage_IsInvalidArgument) {
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(LivenessPage::Map(Fd()).status().code(), refused);
  EXPECT_EQ(LivenessPage::Map(Fd(open("/dev/null", O_RDWR))).status().code(), refused);
  Fd unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(LivenessPage::Map(std::move(unsealed)).status().code(), refused);
}

}  // namespace
}  // namespace hvd::os

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[0], "holder") == 0) return hvd::os::RunHolder(argv[1]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
