#include "worker_runtime/commit_store/arena_view.h"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "worker_runtime/commit_store/commit_arena.h"

namespace hvd::worker_runtime::commit_store {
namespace {

class ArenaViewTest : public testing::Test {
 protected:
  Fd Handed() const { return Fd(dup(memory_.get())); }
  std::unique_ptr<CommitArena> Open() const { return CommitArena::Open(Handed(), "job").value(); }
  static void Commit(CommitArena& arena, uint64_t number, absl::string_view contents) {
    EXPECT_TRUE(arena.Begin(contents.size()).ok());
    EXPECT_TRUE(arena.Append(contents).ok());
    EXPECT_TRUE(arena.Seal(number).ok());
  }

  const Fd memory_{memfd_create("commits", MFD_CLOEXEC)};
  ArenaView view_{Handed(), "job"};
};

TEST_F(ArenaViewTest, Newest_BeforeTheFirstCommit_IsNone) {
  EXPECT_FALSE(view_.Newest().has_value());
  const auto arena = Open();
  EXPECT_FALSE(view_.Newest().has_value());
}

TEST_F(ArenaViewTest, Newest_OtherJob_ReturnsNothing) {
  Commit(*Open(), 1, "one");
  EXPECT_FALSE(ArenaView(Handed(), "another job").Newest().has_value());
}

TEST_F(ArenaViewTest, Read_OwnerContinues_KeepsTheReadCommit) {
  const auto arena = Open();
  Commit(*arena, 1, "one");
  const auto contents = view_.Read(*view_.Newest());
  ASSERT_TRUE(contents.ok());
  for (int i = 2; i < 9; ++i) Commit(*arena, i, "abc");
  EXPECT_EQ(*contents, "one");
  EXPECT_EQ(view_.Newest()->number, 8u);
}

TEST_F(ArenaViewTest, Read_Replaced_IsAborted) {
  const auto arena = Open();
  Commit(*arena, 1, "one");
  const auto first = *view_.Newest();
  for (int i = 2; i < 9; ++i) Commit(*arena, i, "abc");
  EXPECT_TRUE(absl::IsAborted(view_.Read(first).status()));
}

TEST_F(ArenaViewTest, TakeOver_OnlyWhatIsNewer) {
  const Fd memory(memfd_create("other", MFD_CLOEXEC));
  const auto other = CommitArena::Open(Fd(dup(memory.get())), "job").value();
  EXPECT_TRUE(absl::IsNotFound(other->TakeOver(view_)));
  const auto arena = Open();
  Commit(*arena, 5, "five");
  EXPECT_TRUE(other->TakeOver(view_).ok());
  EXPECT_EQ(other->Newest()->contents, "five");
  EXPECT_EQ(other->newest_number(), 5u);
  EXPECT_TRUE(absl::IsNotFound(other->TakeOver(view_)));
}

TEST_F(ArenaViewTest, TakeOver_DamagedCommit_IsNotTaken) {
  const auto arena = Open();
  Commit(*arena, 5, "five");
  const_cast<char*>(arena->Newest()->contents.data())[0] = 'x';
  const Fd memory(memfd_create("other", MFD_CLOEXEC));
  const auto other = CommitArena::Open(Fd(dup(memory.get())), "job").value();
  EXPECT_TRUE(absl::IsAborted(other->TakeOver(view_)));
  EXPECT_FALSE(other->Newest().has_value());
}

TEST_F(ArenaViewTest, Clear_NothingIsLeft_AndCommitsCanFollow) {
  const auto arena = Open();
  Commit(*arena, 5, std::string(1 << 20, 'x'));
  arena->Clear();
  EXPECT_FALSE(view_.Newest().has_value());
  Commit(*arena, 6, "six");
  EXPECT_EQ(view_.Newest()->number, 6u);
}

}  // namespace
}  // namespace hvd::worker_runtime::commit_store
