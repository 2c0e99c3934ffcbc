// Tests of a worker whose process executes another program.
#include "agent/worker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/os/liveness_page.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

// The worker's process: gets the number of the agent's descriptor of the page from the fifo, holds
// the page, and becomes another program unless `what` says otherwise.
int RunHolder(const std::string& what, const char* fifo) {
  const Fd told(open(fifo, O_RDONLY));
  int page_fd = -1;
  if (read(told.get(), &page_fd, sizeof(page_fd)) != sizeof(page_fd)) return 1;
  const std::string path = absl::StrCat("/proc/", getppid(), "/fd/", page_fd);
  absl::StatusOr<os::LivenessPage> page = os::LivenessPage::Map(Fd(open(path.c_str(), O_RDWR)));
  if (!page.ok() || !page->HoldForever().ok()) return 1;
  page->SetBusy(true);
  if (what == "exits") return 3;
  if (what == "rests") page->SetBusy(false);
  execl("/bin/sleep", "sleep", "1000", nullptr);
  return 1;
}

// The loop runs in the test's thread, until something is told.
class WorkerTest : public testing::Test {
 protected:
  WorkerTest() { EXPECT_EQ(mkfifo(fifo_.c_str(), 0600), 0); }
  ~WorkerTest() override {
    if (!exited_.has_value()) {
      worker_->Stop(absl::ZeroDuration());
      loop_->Run();
    }
    unlink(fifo_.c_str());
  }

  // Starts a worker whose process does `what`; returns when it is lost.
  void Lose(const std::string& what) {
    LaunchPlan plan;
    plan.file = "/proc/self/exe";
    plan.argv = {"holder", what, fifo_};
    worker_ = Worker::Start(*loop_, plan, pb::StartWorker(), WorkerPlace(), /*adoption=*/nullptr,
                            {[](const pb::WorkerOutput&) {}, [] {}, [this] { loop_->Stop(); },
                             [this](const pb::WorkerExited& exited) {
                               exited_ = exited;
                               loop_->Stop();
                             }})
                  .value();
    ASSERT_TRUE(worker_->Follow(worker_->pid()));
    const int page_fd = worker_->WatchProcess().value();
    const Fd fifo(open(fifo_.c_str(), O_WRONLY));
    ASSERT_EQ(write(fifo.get(), &page_fd, sizeof(page_fd)), sizeof(page_fd));
    loop_->Run();
  }

  // All checks but the one that would kill the worker.
  void CheckAlmostToTheEnd() {
    for (int i = 1; i < Worker::kReplacedChecks; ++i) EXPECT_TRUE(worker_->CheckReplaced());
  }

  const std::string fifo_ = absl::StrCat(testing::TempDir(), "/worker_test_", getpid());
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create().value();
  std::unique_ptr<Worker> worker_;
  std::optional<pb::WorkerExited> exited_;
};

TEST_F(WorkerTest, CheckReplaced_OtherProgramForLong_KillsIt) {
  Lose("executes");
  CheckAlmostToTheEnd();
  EXPECT_TRUE(worker_->CheckReplaced());
  loop_->Run();
  ASSERT_TRUE(exited_.has_value());
  EXPECT_EQ(exited_->signal(), SIGKILL);
  EXPECT_NE(exited_->killed_for(), "");
  EXPECT_FALSE(worker_->CheckReplaced());
}

TEST_F(WorkerTest, CheckReplaced_EndsInTime_IsNotBlamed) {
  Lose("executes");
  CheckAlmostToTheEnd();
  worker_->Stop(absl::ZeroDuration());
  loop_->Run();
  ASSERT_TRUE(exited_.has_value());
  EXPECT_EQ(exited_->killed_for(), "");
}

// A script that executes itself again and calls hvd.init().
TEST_F(WorkerTest, CheckReplaced_OtherProgramAsks_IsThatNoMore) {
  Lose("executes");
  CheckAlmostToTheEnd();
  EXPECT_TRUE(worker_->Follow(worker_->pid()));
  EXPECT_FALSE(worker_->CheckReplaced());
}

TEST_F(WorkerTest, CheckReplaced_AfterShutdown_MayExecute) {
  Lose("rests");
  EXPECT_FALSE(worker_->CheckReplaced());
}

TEST_F(WorkerTest, CheckReplaced_HasEnded_IsNoOtherProgram) {
  Lose("exits");
  while (!exited_.has_value()) loop_->Run();
  EXPECT_FALSE(worker_->CheckReplaced());
  EXPECT_EQ(exited_->exit_code(), 3);
  EXPECT_EQ(exited_->killed_for(), "");
}

}  // namespace
}  // namespace hvd::agent

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[0], "holder") == 0) {
    return hvd::agent::RunHolder(argv[1], argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
