#include "agent/copies/held_commits.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "gtest/gtest.h"
#include "worker_runtime/commit_store/commit_arena.h"

namespace hvd::agent::copies {
namespace {

using worker_runtime::commit_store::CommitArena;

class HeldCommitsTest : public testing::Test {
 protected:
  static Fd Memory() { return Fd(memfd_create("arena", MFD_CLOEXEC)); }
  static void Commit(const Fd& memory, uint64_t number) {
    auto arena = CommitArena::Open(Fd(fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)), "job");
    ASSERT_TRUE(arena.ok()) << arena.status();
    ASSERT_TRUE((*arena)->Begin(5).ok());
    ASSERT_TRUE((*arena)->Append("state").ok());
    ASSERT_TRUE((*arena)->Seal(number).ok());
  }

  HeldCommits held_{"job"};
};

TEST_F(HeldCommitsTest, Nothing) {
  held_.Add(-1);
  EXPECT_EQ(held_.newest().commit, 0u);
  const Fd memory = Memory();
  held_.Add(memory.get());
  EXPECT_EQ(held_.newest().commit, 0u);
  EXPECT_EQ(held_.newest().arena, -1);
}

TEST_F(HeldCommitsTest, TheNewestOfAllSlots) {
  const Fd a = Memory(), b = Memory();
  held_.Add(a.get());
  held_.Add(b.get());
  EXPECT_EQ(held_.arenas(), (std::vector<int>{a.get(), b.get()}));
  held_.Add(b.get());
  Commit(a, 7);
  Commit(b, 9);
  EXPECT_EQ(held_.newest().commit, 9u);
  EXPECT_EQ(held_.newest().arena, b.get());
  Commit(a, 10);
  EXPECT_EQ(held_.newest().arena, a.get());
}

TEST_F(HeldCommitsTest, CommitsOfAnotherJobDoNotCount) {
  const Fd memory = Memory();
  Commit(memory, 7);
  HeldCommits other("another job");
  other.Add(memory.get());
  EXPECT_EQ(other.newest().commit, 0u);
}

}  // namespace
}  // namespace hvd::agent::copies
