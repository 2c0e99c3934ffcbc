#include "launcher/report/failure_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

rendezvous::membership::Verdict Failure() {
  rendezvous::membership::Verdict verdict;
  verdict.exit_code = 3;
  verdict.summary = "rank 1 on host b failed: ValueError: bad\nnews (exit code 3)";
  verdict.rank = 1;
  verdict.host = "b";
  verdict.exit_meaning = "exit code 3";
  verdict.exception = "ValueError: bad\nnews";
  verdict.stderr_tail = {"Traceback (most recent call last):", "ValueError: bad\r"};
  verdict.consequences = 2;
  return verdict;
}

TEST(RootCauseBlock, TellsEverythingAboutTheFirstRank) {
  const std::string rule(80, '-');
  EXPECT_EQ(RootCauseBlock(Failure()),
            rule +
                "\nHorovod ended the job because a process failed. The first was:\n"
                "Process name: 1\n"
                "Exit code: 3\n"
                "  Cause: rank 1 on host b failed: ValueError: bad news (exit code 3)\n"
                "  Last lines of its stderr:\n"
                "    | Traceback (most recent call last):\n"
                "    | ValueError: bad\n"
                "  2 other ranks failed because of it.\n" +
                rule + "\n");
}

TEST(RootCauseBlock, ProcessThatLeftIsNotCalledFailed) {
  rendezvous::membership::Verdict verdict = Failure();
  verdict.exit_meaning = "exit code 0";
  verdict.summary = "rank 1 on host b left first";
  verdict.stderr_tail.clear();
  EXPECT_THAT(
      RootCauseBlock(verdict),
      HasSubstr("a process left while others still needed it:\nProcess name: 1\nExit code: 0\n"
                "  Cause: rank 1 on host b left first\n"
                "  2 other ranks failed because of it.\n"));
}

TEST(RootCauseBlock, OmitsUnknownFields) {
  rendezvous::membership::Verdict verdict = Failure();
  verdict.stderr_tail.clear();
  verdict.consequences = 0;
  const std::string block = RootCauseBlock(verdict);
  EXPECT_THAT(block, Not(HasSubstr("stderr")));
  EXPECT_THAT(block, Not(HasSubstr("other rank")));
  verdict.consequences = 1;
  EXPECT_THAT(RootCauseBlock(verdict), HasSubstr("1 other rank failed because of it."));
}

TEST(RootCauseBlock, LostHostIsNamedWithItsCause) {
  rendezvous::membership::Verdict verdict;
  verdict.exit_code = 1;
  verdict.host = "b";
  verdict.summary = "host b was lost: its agent's connection ended";
  const std::string block = RootCauseBlock(verdict);
  EXPECT_THAT(block, HasSubstr("Cause: host b was lost"));
  EXPECT_THAT(block, HasSubstr("Horovod ended the job because a host was lost."));
  EXPECT_THAT(block, Not(HasSubstr("Process name")));
}

TEST(RootCauseBlock, WithoutACulpritTheSummarySpeaks) {
  rendezvous::membership::Verdict verdict;
  verdict.summary = "gave up";
  EXPECT_THAT(RootCauseBlock(verdict), HasSubstr("The job has failed.\n  Cause: gave up\n"));
  EXPECT_THAT(RootCauseBlock(verdict), Not(HasSubstr("non-zero status")));
}

}  // namespace
}  // namespace hvd::launcher::report
