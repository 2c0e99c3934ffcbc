#include "base/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

TEST(ProcessTreeTest, ChildrenOf_OneChild_NamesIt) {
  SpawnOptions options;
  options.file = "sleep";
  options.argv = {"a) name (with", "1000"};
  Process process = Process::Spawn(options).value();
  EXPECT_EQ(ChildrenOf(getpid()), std::vector<pid_t>{process.pid()});
}

// A child that left its session and lost its parent, and one of its own, hold the pipe: it ends
// when all of them are dead.
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

TEST(ProcessTreeTest, KillDescendants_NoChild_Returns) {
  KillDescendants();
  EXPECT_TRUE(ChildrenOf(getpid()).empty());
}

}  // namespace
}  // namespace hvd
