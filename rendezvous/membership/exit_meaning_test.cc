#include <csignal>

#include "gtest/gtest.h"
#include "rendezvous/membership/root_cause.h"

namespace hvd::rendezvous::membership {
namespace {

WorkerExited Code(int code) {
  WorkerExited exited;
  exited.exit_code = code;
  return exited;
}

WorkerExited Signal(int signal) {
  WorkerExited exited;
  exited.signal = signal;
  return exited;
}

TEST(ExitMeaningTest, ExitCode) {
  EXPECT_EQ(ExitMeaning(Code(3)), "exit code 3");
  EXPECT_EQ(FailureExitCode(Code(3)), 3);
  EXPECT_FALSE(ExitedWithZero(Code(3)));
}

TEST(ExitMeaningTest, Zero_IsAFailureOnlyIfTheCallerSaysSo) {
  EXPECT_TRUE(ExitedWithZero(Code(0)));
  EXPECT_EQ(ExitMeaning(Code(0)), "exit code 0");
  EXPECT_EQ(FailureExitCode(Code(0)), 1);
}

TEST(ExitMeaningTest, UnknownEnd_IsTheGivenText) {
  WorkerExited exited = Code(1);
  exited.unknown_end = "ended without\na word";
  EXPECT_EQ(ExitMeaning(exited), "ended without a word");
  EXPECT_EQ(FailureExitCode(exited), 1);
  EXPECT_FALSE(ExitedWithZero(exited));
}

TEST(ExitMeaningTest, Signal_HasItsNameAndTheShellsCode) {
  EXPECT_EQ(ExitMeaning(Signal(SIGTERM)), "killed by signal 15 (SIGTERM)");
  EXPECT_EQ(FailureExitCode(Signal(SIGTERM)), 143);
  EXPECT_FALSE(ExitedWithZero(Signal(SIGTERM)));
}

TEST(ExitMeaningTest, Signal_WithoutName_HasItsNumber) {
  EXPECT_EQ(ExitMeaning(Signal(60)), "killed by signal 60");
  EXPECT_EQ(ExitMeaning(Signal(-7)), "killed by signal -7");
}

TEST(ExitMeaningTest, CoreDumpAndMemory_AreNamed) {
  WorkerExited exited = Signal(SIGSEGV);
  exited.core_dumped = true;
  EXPECT_EQ(ExitMeaning(exited), "killed by signal 11 (SIGSEGV), core dumped");
  exited = Signal(SIGKILL);
  exited.out_of_memory = true;
  EXPECT_EQ(ExitMeaning(exited), "killed by signal 9 (SIGKILL), out of memory");
}

TEST(ExitMeaningTest, KilledByItsAgent_SaysWhy) {
  WorkerExited exited = Signal(SIGKILL);
  exited.killed_for = "it was stopped (SIGSTOP)\nfor 10 s";
  EXPECT_EQ(ExitMeaning(exited),
            "killed by signal 9 (SIGKILL) by its agent: it was stopped (SIGSTOP) for 10 s");
}

TEST(ExitMeaningTest, StartError_IsNotZero) {
  WorkerExited exited;
  exited.start_error = "python: not found";
  EXPECT_EQ(ExitMeaning(exited), "could not be started: python: not found");
  EXPECT_EQ(FailureExitCode(exited), 1);
  EXPECT_FALSE(ExitedWithZero(exited));
}

TEST(ExitMeaningTest, CodesThatAShellCannotShow_BecomeOne) {
  EXPECT_EQ(FailureExitCode(Code(256)), 1);
  EXPECT_EQ(FailureExitCode(Code(-1)), 1);
  EXPECT_EQ(FailureExitCode(Signal(200)), 1);
}

}  // namespace
}  // namespace hvd::rendezvous::membership
