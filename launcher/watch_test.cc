#include "launcher/watch.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/served_job_test_util.h"

namespace hvd::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Calls the next step in each pause, in which no time passes otherwise.
class StepClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex&, const absl::Condition&, absl::Time deadline) override {
    now_ = deadline;
    if (steps.empty()) return false;
    auto step = std::move(steps.front());
    steps.erase(steps.begin());
    step();
    return false;
  }
  std::vector<std::function<void()>> steps;

 private:
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

class WatchTest : public ServedJobFixture {
 protected:
  void SetUp() override {
    ServedJobFixture::SetUp();
    file_ = Register("4711abcdef");
    options_.watch = absl::Seconds(10);
  }

  absl::Status Run() {
    return Watch(options_, directory_, clock_, [this](const std::string& text) {
      shown_.push_back(text);
      return shown_.size() < most_;
    });
  }

  std::unique_ptr<job::JobFile> file_;
  StepClock clock_;
  cli::ControlOptions options_;
  std::vector<std::string> shown_;
  size_t most_ = 100;
};

TEST_F(WatchTest, JobHere_IsShownUntilItHasGone) {
  clock_.steps = {[] {}, [this] { file_.reset(); }};
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(shown_,
              ElementsAre(HasSubstr(": forming"), HasSubstr(": forming"), "the job has ended\n"));
}

TEST_F(WatchTest, JobWithAVerdict_IsShownForTheLastTime) {
  clock_.steps = {[this] { server_->RequestStop("a test", 3, absl::ZeroDuration()); }};
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(shown_, ElementsAre(HasSubstr(": forming"), EndsWith("\n\nthe job has ended\n")));
}

TEST_F(WatchTest, Json_HasNothingElse) {
  options_.json = true;
  clock_.steps = {[this] { file_.reset(); }};
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(shown_, ElementsAre(StartsWith("{")));
}

TEST_F(WatchTest, NobodyReads_ItEnds) {
  most_ = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(shown_.size(), 2u);
}

TEST_F(WatchTest, DaemonIsAway_ForAWhile) {
  clock_.steps = {[this] { server_.reset(); }};
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith("no answer for 30s: "));
  EXPECT_EQ(shown_.size(), 1u);
}

TEST_F(WatchTest, NoJob_IsAnErrorAtOnce) {
  file_.reset();
  EXPECT_TRUE(absl::IsNotFound(Run()));
  EXPECT_TRUE(shown_.empty());
}

}  // namespace
}  // namespace hvd::launcher
