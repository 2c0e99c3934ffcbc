#include "rendezvous/membership/failures.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

class FailuresTest : public testing::Test {
 protected:
  static Worker Raised(const std::string& exception) {
    Worker worker;
    worker.exception = exception;
    return worker;
  }

  Failures failures_{policy::FailureBudget()};
};

TEST_F(FailuresTest, Complaint_IsTheException_OrTheLastLineBeforeInit) {
  EXPECT_EQ(failures_.Complaint(Raised("ValueError: x")), "ValueError: x");
  Worker worker;
  worker.stderr_tail = {"Traceback", "ImportError: y"};
  EXPECT_EQ(failures_.Complaint(worker), "ImportError: y");
  worker.last_world = Epoch(1);
  EXPECT_EQ(failures_.Complaint(worker), "") << "after hvd.init() it would have reported it";
}

TEST_F(FailuresTest, Complaint_IsTheExitCodeOfASilentProcess_NotASignal) {
  failures_.last.exit_meaning = "exit code 3";
  EXPECT_EQ(failures_.Complaint(Worker()), "exit code 3");
  failures_.last.exit_meaning = "killed by signal 9 (SIGKILL)";
  EXPECT_EQ(failures_.Complaint(Worker()), "");
}

TEST_F(FailuresTest, IsUserBug_TheSameOnTwoMachines) {
  EXPECT_FALSE(failures_.IsUserBug(Raised("ValueError: x"), "a", false));
  EXPECT_FALSE(failures_.IsUserBug(Raised("ValueError: x"), "a", false)) << "the machine's fault?";
  EXPECT_FALSE(failures_.IsUserBug(Raised("ValueError: y"), "b", false));
  EXPECT_TRUE(failures_.IsUserBug(Raised("ValueError: x"), "b", false));
}

TEST_F(FailuresTest, IsUserBug_TwiceOnTheOnlyMachine) {
  EXPECT_FALSE(failures_.IsUserBug(Raised("ValueError: x"), "a", true));
  EXPECT_TRUE(failures_.IsUserBug(Raised("ValueError: x"), "a", true));
  EXPECT_FALSE(failures_.IsUserBug(Worker(), "a", true)) << "it has no complaint";
}

TEST_F(FailuresTest, IsUserBug_RemembersSoManyOnly) {
  failures_.IsUserBug(Raised("first"), "a", false);
  for (size_t i = 0; i < Failures::kMostEarly; ++i) {
    failures_.IsUserBug(Raised(std::to_string(i)), "a", false);
  }
  EXPECT_EQ(failures_.early.size(), Failures::kMostEarly);
  EXPECT_FALSE(failures_.IsUserBug(Raised("first"), "b", false));
}

TEST_F(FailuresTest, GaveUp_NamesTheLastFailure) {
  EXPECT_EQ(failures_.GaveUp("3 failures").summary, "gave up after 3 failures");
  failures_.last.summary = "rank 1 failed";
  failures_.last.success = true;
  const Verdict verdict = failures_.GaveUp("3 failures");
  EXPECT_EQ(verdict.summary, "gave up after 3 failures; the last: rank 1 failed");
  EXPECT_FALSE(verdict.success);
  EXPECT_EQ(verdict.exit_code, 1);
}

}  // namespace
}  // namespace hvd::rendezvous::membership
