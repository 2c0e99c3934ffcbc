#include "collectives/messages/fork_mark.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace hvd::collectives::messages {
namespace {

TEST(ForkMarkTest, IsOwnProcess_NotInAForkedChild) {
  const ForkMark mark;
  EXPECT_TRUE(mark.IsOwnProcess());
  const pid_t child = fork();
  if (child == 0) _exit(mark.IsOwnProcess() ? 1 : 0);
  int code = -1;
  waitpid(child, &code, 0);
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(mark.IsOwnProcess());
}

}  // namespace
}  // namespace hvd::collectives::messages
