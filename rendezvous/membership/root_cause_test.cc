#include "rendezvous/membership/root_cause.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::membership {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

WorkerExited Code(int code) {
  WorkerExited exited;
  exited.exit_code = code;
  return exited;
}

TEST(RootCauseTest, OneExit_IsTheCause) {
  RootCause cause;
  EXPECT_FALSE(cause.HasEnd());
  WorkerExited exited = Code(3);
  exited.stderr_tail = {"one", "two"};
  cause.Exited(1, "b", exited);
  EXPECT_TRUE(cause.HasEnd());
  EXPECT_TRUE(cause.IsCertain());
  const Verdict verdict = cause.Build();
  EXPECT_FALSE(verdict.success);
  EXPECT_EQ(verdict.exit_code, 3);
  EXPECT_EQ(verdict.summary, "rank 1 on host b failed: exit code 3");
  EXPECT_EQ(verdict.rank, 1);
  EXPECT_EQ(verdict.host, "b");
  EXPECT_EQ(verdict.exit_meaning, "exit code 3");
  EXPECT_THAT(verdict.stderr_tail, ElementsAre("one", "two"));
  EXPECT_EQ(verdict.consequences, 0);
}

// A process that raises before hvd.init() can't report it.
TEST(RootCauseTest, TracebackOfAProcessThatReportedNothing_NamesItsException) {
  const std::vector<std::string> traceback = {
      "Traceback (most recent call last):", "  File \"train.py\", line 2, in <module>",
      "    raise ValueError(text)", "    ^^^^^^"};
  const auto summary_after = [&traceback](std::vector<std::string> more, int signal = 0) {
    RootCause cause;
    WorkerExited exited = Code(signal == 0 ? 1 : 0);
    exited.signal = signal;
    exited.stderr_tail = traceback;
    exited.stderr_tail.insert(exited.stderr_tail.end(), more.begin(), more.end());
    cause.Exited(1, "b", exited);
    return cause.Build().summary;
  };
  EXPECT_EQ(summary_after({"ValueError: no file there"}),
            "rank 1 on host b failed: ValueError: no file there (exit code 1)");
  EXPECT_EQ(summary_after({"package.Broken: first line", "second line"}),
            "rank 1 on host b failed: package.Broken: first line (exit code 1)");
  EXPECT_EQ(summary_after({"KeyboardInterrupt"}),
            "rank 1 on host b failed: KeyboardInterrupt (exit code 1)");
  EXPECT_EQ(summary_after({}), "rank 1 on host b failed: exit code 1");
  EXPECT_EQ(summary_after({"not a class name: x"}), "rank 1 on host b failed: exit code 1");
  EXPECT_THAT(summary_after({"ValueError: x"}, 9), Not(HasSubstr("ValueError")));
}

TEST(RootCauseTest, ReportOfAnException_PrecedesItsTraceback) {
  RootCause cause;
  cause.Said(1, "b", "ValueError: reported", false);
  WorkerExited exited = Code(1);
  exited.stderr_tail = {"  File \"train.py\", line 2, in <module>", "ValueError: printed"};
  cause.Exited(1, "b", exited);
  EXPECT_EQ(cause.Build().exception, "ValueError: reported");
}

TEST(RootCauseTest, Consequence_IsNotCertainAndYieldsToALaterCause) {
  RootCause cause;
  cause.Said(0, "a", "HorovodInternalError: rank 1 is gone", true);
  cause.Exited(0, "a", Code(1));
  EXPECT_TRUE(cause.HasEnd());
  EXPECT_FALSE(cause.IsCertain());
  EXPECT_EQ(cause.Build().rank, 0) << "what is known so far";
  cause.Exited(1, "b", Code(3));
  EXPECT_TRUE(cause.IsCertain());
  EXPECT_EQ(cause.Build().rank, 1);
  EXPECT_EQ(cause.Build().exit_code, 3);
  EXPECT_EQ(cause.Build().consequences, 1);
}

TEST(RootCauseTest, Exception_IsPartOfTheVerdict) {
  RootCause cause;
  cause.Said(1, "b", "ValueError: boom\n", false);
  EXPECT_FALSE(cause.HasEnd());
  EXPECT_FALSE(cause.IsCertain());
  cause.Exited(1, "b", Code(1));
  EXPECT_TRUE(cause.IsCertain());
  EXPECT_EQ(cause.Build().exception, "ValueError: boom");
  EXPECT_EQ(cause.Build().summary, "rank 1 on host b failed: ValueError: boom (exit code 1)");
}

TEST(RootCauseTest, WordBeforeAnothersExit_IsEarlierButItsExitIsMissing) {
  RootCause cause;
  cause.Said(2, "b", "ValueError: boom", false);
  cause.Exited(1, "a", Code(9));
  EXPECT_TRUE(cause.HasEnd());
  EXPECT_FALSE(cause.IsCertain());
  EXPECT_EQ(cause.Build().summary, "rank 2 on host b failed: ValueError: boom (still running)");
  EXPECT_EQ(cause.Build().exit_code, 1);
  cause.Exited(2, "b", Code(5));
  EXPECT_TRUE(cause.IsCertain());
  EXPECT_EQ(cause.Build().exit_code, 5);
  EXPECT_EQ(cause.Build().consequences, 1);
}

TEST(RootCauseTest, LastWordCounts) {
  RootCause cause;
  cause.Said(0, "a", "peer gone", true);
  cause.Said(0, "a", "ValueError: boom", false);
  cause.Exited(0, "a", Code(1));
  EXPECT_TRUE(cause.IsCertain());
  EXPECT_EQ(cause.Build().exception, "ValueError: boom");
}

TEST(RootCauseTest, Retract_ForgetsWordsButNotEnds) {
  RootCause cause;
  cause.Said(0, "a", "caught", false);
  cause.Retract(0);
  cause.Exited(1, "b", Code(3));
  cause.Retract(1);
  EXPECT_TRUE(cause.IsCertain());
  EXPECT_EQ(cause.Build().rank, 1);
  EXPECT_EQ(cause.Build().consequences, 0);
}

TEST(RootCauseTest, HostLost_BlamesNoRank) {
  RootCause cause;
  cause.Said(0, "a", "peer gone", true);
  cause.Exited(0, "a", Code(1));
  cause.HostLost("b", "the connection broke\n");
  EXPECT_TRUE(cause.IsCertain());
  const Verdict verdict = cause.Build();
  EXPECT_EQ(verdict.rank, -1);
  EXPECT_EQ(verdict.host, "b");
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_EQ(verdict.summary, "host b was lost: the connection broke");
  EXPECT_EQ(verdict.consequences, 1);
}

TEST(RootCauseTest, HostLost_AfterItsWorkersWord_TheWordIsTheCause) {
  RootCause cause;
  cause.Said(3, "b", "MemoryError", false);
  cause.HostLost("b", "no heartbeat");
  EXPECT_TRUE(cause.IsCertain());
  EXPECT_EQ(cause.Build().summary,
            "rank 3 on host b failed: MemoryError (host b was lost: no heartbeat)");
}

TEST(RootCauseTest, Left_OthersOnlyFailForWantOfIt_IsTheCause) {
  RootCause cause;
  cause.Said(0, "a", "HorovodInternalError: Rank 1 left first; its output may tell why", true);
  cause.Left(2, "b");
  cause.Left(1, "b");
  cause.Exited(0, "a", Code(3));
  const Verdict verdict = cause.Build();
  EXPECT_EQ(verdict.rank, 1);
  EXPECT_EQ(verdict.host, "b");
  EXPECT_EQ(verdict.exit_meaning, "exit code 0");
  EXPECT_EQ(verdict.exit_code, 3) << "the job's";
  EXPECT_EQ(verdict.summary,
            "rank 1 on host b left first: its script came to its end, or called sys.exit(0), while "
            "rank 0 on host a still needed it");
  EXPECT_TRUE(verdict.stderr_tail.empty());
  EXPECT_EQ(verdict.consequences, 1);
}

TEST(RootCauseTest, Left_ButAnotherFailedByItself_TheOtherIsTheCause) {
  RootCause cause;
  cause.Left(1, "b");
  cause.Said(0, "a", "HorovodInternalError: Rank 1 left first", true);
  cause.Exited(0, "a", Code(1));
  cause.Exited(2, "b", Code(7));
  EXPECT_EQ(cause.Build().rank, 2);
}

TEST(RootCauseTest, Left_ButNobodySaysSo_IsNotBlamed) {
  RootCause cause;
  cause.Said(0, "a", "HorovodInternalError: connection reset", true);
  cause.Left(1, "b");
  cause.Exited(0, "a", Code(1));
  EXPECT_EQ(cause.Build().rank, 0);
}

TEST(RootCauseTest, Left_AndReturned_IsNotBlamed) {
  RootCause cause;
  cause.Left(1, "b");
  cause.Returned(1);
  cause.Said(0, "a", "HorovodInternalError: Rank 1 left first", true);
  cause.Exited(0, "a", Code(1));
  EXPECT_EQ(cause.Build().rank, 0);
}

TEST(RootCauseTest, ZeroWithoutFinishing_SaysSo) {
  RootCause cause;
  cause.Exited(1, "b", Code(0));
  EXPECT_EQ(cause.Build().exit_code, 1);
  EXPECT_EQ(cause.Build().exit_meaning, "exit code 0");
  EXPECT_THAT(cause.Build().summary,
              HasSubstr("rank 1 on host b exited with code 0 without having finished"));
}

}  // namespace
}  // namespace hvd::rendezvous::membership
