#include "base/os/process_tree.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

TEST(ProcessTreeTest, ChildrenOf_OneChild_NamesIt) {
  SpawnOptions options;
  options.file = "sleep";
  options.argv = {"a) name (with", "1000"};
  Process process = Process::Spawn(options).value();
  EXPECT_EQ(ChildrenOf(getpid()), std::vector<pid_t>{process.pid()});
}

// An orphan in another session and the orphan's child hold the pipe, which ends when all of them
// are dead.
TEST(ProcessTreeTest, KillDescendants_OrphansInOtherSessions_LeavesNone) {
  BecomeSubreaper();
  Pipe pipe = MakePipe().value();
  SpawnOptions options;
  options.file = "/bin/sh";
  options.argv = {"sh", "-c",
                  "setsid sh -c 'trap \"\" TERM HUP; sleep 1000 & echo up; wait' & "
                  "(setsid sleep 1000 &) ; exit 0"};
  options.stdout_fd = pipe.write.get();
  Process process = Process::Spawn(options).value();
  pipe.write.reset();
  char byte;
  ASSERT_EQ(ReadSome(pipe.read.get(), &byte, 1).bytes, 1u);
  KillDescendants();
  char rest[16];
  while (!ReadSome(pipe.read.get(), rest, sizeof(rest)).end) {
  }
  EXPECT_TRUE(ChildrenOf(getpid()).empty());
}

// Prints its number, and waits.
constexpr char kSayPid[] = "echo $$; exec sleep 1000";

Process StartShell(const std::string& script, Pipe& pipe) {
  SpawnOptions options;
  options.file = "/bin/sh";
  options.argv = {"sh", "-c", script};
  options.stdout_fd = pipe.write.get();
  return Process::Spawn(options).value();
}

pid_t ReadPid(const Pipe& pipe) {
  std::string line;
  for (char byte; ReadSome(pipe.read.get(), &byte, 1).bytes == 1 && byte != '\n';) line += byte;
  return std::stoi(line);
}

TEST(ProcessTreeTest, DescendsFrom_ChildGrandchildAndOrphan_DoNeighboursDoNot) {
  BecomeSubreaper();
  Pipe pipe = MakePipe().value();
  const std::string say = kSayPid;
  const Process child = StartShell("sh -c '" + say + "' & wait", pipe);
  const pid_t grandchild = ReadPid(pipe);
  const Process neighbour = StartShell("(setsid sh -c '" + say + "' &); exec sleep 1000", pipe);
  const pid_t orphan = ReadPid(pipe);
  for (const pid_t pid : {child.pid(), grandchild, neighbour.pid(), orphan}) {
    EXPECT_TRUE(DescendsFrom(pid, getpid()).value()) << pid;
  }
  EXPECT_TRUE(DescendsFrom(grandchild, child.pid()).value());
  EXPECT_FALSE(DescendsFrom(neighbour.pid(), child.pid()).value());
  EXPECT_FALSE(DescendsFrom(getpid(), getpid()).value());
  EXPECT_FALSE(DescendsFrom(getppid(), getpid()).value());
  EXPECT_FALSE(DescendsFrom(0, getpid()).value());
  KillDescendants();
}

TEST(ProcessTreeTest, DescendsFrom_WithoutADescriptor_SaysSo) {
  // In a child, since the limit is that of a whole process.
  Process child = Process::Fork(
                      [] {
                        const rlimit none = {3, 3};
                        setrlimit(RLIMIT_NOFILE, &none);
                        while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) continue;
                        const absl::Status status = DescendsFrom(getpid(), getppid()).status();
                        const bool named = absl::StrContains(status.message(), "all 3 file desc");
                        return absl::IsResourceExhausted(status) && named ? 0 : 1;
                      },
                      SIGKILL)
                      .value();
  EXPECT_EQ(child.Wait().exit_code, 0);
}

TEST(ProcessTreeTest, ProcIsOurs_HereAndInANamespaceWithoutItsOwn_TellsThemApart) {
  EXPECT_TRUE(ProcIsOurs());
  constexpr int kUnable = 9;
  Process outer = Process::Fork(
                      [] {
                        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return kUnable;
                        // _exit skips the leak check of sanitizers, which fails in such a namespace
                        const auto ask = []() -> int { _exit(ProcIsOurs() ? 1 : 0); };
                        _exit(Process::Fork(ask, 0)->Wait().exit_code);
                      },
                      SIGKILL)
                      .value();
  const int exit_code = outer.Wait().exit_code;
  if (exit_code == kUnable) GTEST_SKIP() << "no namespaces to be had here";
  EXPECT_EQ(exit_code, 0);
}

TEST(ProcessTreeTest, KillDescendants_NoChild_Returns) {
  KillDescendants();
  EXPECT_TRUE(ChildrenOf(getpid()).empty());
}

}  // namespace
}  // namespace hvd::os
