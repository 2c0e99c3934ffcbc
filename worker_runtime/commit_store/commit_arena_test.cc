#include "worker_runtime/commit_store/commit_arena.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>
#include <string>

#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker_runtime/commit_store/arena_memory.h"

namespace hvd::worker_runtime::commit_store {
namespace {

using ::testing::ElementsAre;
using Arena = std::unique_ptr<CommitArena>;

class CommitArenaTest : public testing::Test {
 protected:
  // The descriptor that the agent would pass to a new worker.
  Fd Handed() const { return Fd(dup(memory_.get())); }
  Arena Open(absl::string_view job = "job") const {
    return CommitArena::Open(Handed(), job).value();
  }
  static const char* Put(CommitArena& arena, absl::string_view contents,
                         const void* keep = nullptr) {
    const char* const place = arena.Begin(contents.size(), keep).value();
    EXPECT_TRUE(arena.Append(contents).ok());
    return place;
  }
  static void Commit(CommitArena& arena, uint64_t number, absl::string_view contents) {
    Put(arena, contents);
    EXPECT_TRUE(arena.Seal(number).ok());
  }
  static std::string Text(CommitArena& arena) {
    const auto newest = arena.Newest();
    if (!newest.has_value()) return "none";
    return absl::StrCat(newest->number, ":", newest->contents);
  }

  Fd memory_{memfd_create("commits", MFD_CLOEXEC)};
};

TEST_F(CommitArenaTest, Newest_NothingSealed_IsNone) {
  Arena arena = Open();
  EXPECT_EQ(Text(*arena), "none");
  Put(*arena, "unsealed");
  EXPECT_EQ(Text(*arena), "none");
}

TEST_F(CommitArenaTest, Newest_NextProcess_GetsTheLastSealed) {
  Arena arena = Open();
  for (int i = 1; i <= 5; ++i) Commit(*arena, i, absl::StrCat("contents of ", i));
  Put(*arena, "unsealed");
  arena.reset();
  EXPECT_EQ(Text(*Open()), "5:contents of 5");
}

TEST_F(CommitArenaTest, Newest_NumbersComeAgain_IsTheLastSealed) {
  Arena arena = Open();
  Commit(*arena, 7, "rolled back");
  Commit(*arena, 6, "valid");
  EXPECT_EQ(Text(*arena), "6:valid");
}

TEST_F(CommitArenaTest, Append_Parts_StartAtMultiplesOfTheAlignment) {
  Arena arena = Open();
  ASSERT_TRUE(arena->Begin(70).ok());
  EXPECT_TRUE(arena->Append("ab").ok());
  EXPECT_TRUE(arena->Append("cdef").ok());
  EXPECT_TRUE(arena->Seal(1).ok());
  EXPECT_EQ(Text(*arena), "1:ab" + std::string(62, '\0') + "cdef");
}

TEST_F(CommitArenaTest, AppendAll_ByManyThreads_IsAsOneAfterTheOther) {
  Arena arena = Open();
  ThreadTeam team;
  const std::string first(3'000'000, 'a'), second(70, 'b'), third(5'000'000, 'c');
  const std::vector<absl::string_view> parts = {first, second, third};
  for (const int threads : {1, 4}) {
    ASSERT_TRUE(arena->Begin(9'000'000).ok());
    EXPECT_TRUE(arena->AppendAll({"head"}, team, threads).ok());
    EXPECT_TRUE(arena->AppendAll(parts, team, threads).ok());
    EXPECT_TRUE(arena->Seal(threads).ok());
    ASSERT_TRUE(arena->Newest().has_value()) << "the checksum is wrong";
    EXPECT_EQ(arena->newest_number(), static_cast<uint64_t>(threads));
    EXPECT_TRUE(arena->BeginComparison().ok());
    EXPECT_TRUE(arena->Append("head").ok());
    for (const absl::string_view part : parts) EXPECT_TRUE(arena->Append(part).ok());
    EXPECT_TRUE(arena->EndComparison());
  }
}

TEST_F(CommitArenaTest, ChecksumsOf_Pieces_AreThoseOfTheirBytes) {
  std::mt19937 random(3);
  std::string large(1'300'000, '\0');
  for (char& c : large) c = static_cast<char>(random());
  Arena arena = Open();
  ThreadTeam team;
  ASSERT_TRUE(arena->Begin(4'000'000).ok());
  const std::vector<absl::string_view> parts = {"head", large, "", "small"};
  ASSERT_TRUE(arena->AppendAll(parts, team, 3).ok());
  // As from a GPU: a tensor in two stretches, in several calls.
  ASSERT_TRUE(arena->Append(large.substr(0, 64'000)).ok());
  ASSERT_TRUE(arena->Append(large.substr(64'000)).ok());
  const size_t second = 64, small = RoundUp(second + large.size(), 64), third = small + 64;
  const CommitArena::Piece all[] = {{second, large.size()}, {small, 5}, {third, large.size()}};
  EXPECT_THAT(arena->ChecksumsOf(all).value(),
              ElementsAre(Crc32c(large), Crc32c("small"), Crc32c(large)));
  const CommitArena::Piece not_whole[] = {{0, 3}, {1, 3}, {third + large.size(), 1}};
  for (const CommitArena::Piece& piece : not_whole) {
    EXPECT_EQ(arena->ChecksumsOf(absl::MakeConstSpan(&piece, 1)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << piece.offset;
  }
  ASSERT_TRUE(arena->Seal(1).ok());
  EXPECT_EQ(arena->ChecksumsOf(all).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CommitArenaTest, Append_MoreThanBegunFor_GivesTheCommitUp) {
  Arena arena = Open();
  Commit(*arena, 1, "one");
  ASSERT_TRUE(arena->Begin(70).ok());
  EXPECT_TRUE(arena->Append("ab").ok());
  EXPECT_EQ(arena->Append(std::string(65, 'x')).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(arena->Append("c").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(arena->Seal(2).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Text(*arena), "1:one");
}

TEST_F(CommitArenaTest, EndComparison_TellsWhetherTheNewestCommitIsTheSame) {
  Arena arena = Open();
  EXPECT_EQ(arena->BeginComparison().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(arena->EndComparison());
  ASSERT_TRUE(arena->Begin(200).ok());
  EXPECT_TRUE(arena->Append("head").ok());
  EXPECT_TRUE(arena->Append("body").ok());
  EXPECT_TRUE(arena->Seal(3).ok());
  const auto is_same = [&](std::vector<absl::string_view> parts) {
    EXPECT_TRUE(arena->BeginComparison().ok());
    for (absl::string_view part : parts) arena->Append(part).IgnoreError();
    return arena->EndComparison();
  };
  EXPECT_TRUE(is_same({"head", "body"}));
  EXPECT_FALSE(is_same({"head", "bodi"}));
  EXPECT_FALSE(is_same({"head"}));
  EXPECT_FALSE(is_same({"headbody"}));
  EXPECT_FALSE(is_same({"head", "body", std::string(200, 'x')}));
  EXPECT_TRUE(arena->BeginComparison().ok());
  EXPECT_EQ(arena->Seal(4).code(), absl::StatusCode::kFailedPrecondition);
  arena.reset();
  arena = Open();  // nothing is mapped
  EXPECT_TRUE(is_same({"head", "body"}));
  EXPECT_EQ(Text(*arena), "3:head" + std::string(60, '\0') + "body");
}

TEST_F(CommitArenaTest, Append_NotBegun_FailedPrecondition) {
  Arena arena = Open();
  EXPECT_EQ(arena->Append("x").code(), absl::StatusCode::kFailedPrecondition);
  ThreadTeam team;
  EXPECT_TRUE(arena->AppendAll({}, team, 2).ok());
  EXPECT_EQ(arena->Seal(1).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CommitArenaTest, Begin_Larger_GrowsAndKeepsEarlierViews) {
  Arena arena = Open();
  std::mt19937 random(1);
  absl::string_view before;
  std::string expected;
  for (size_t size = 10; size < (size_t{20} << 20); size *= 7) {
    std::string contents(size, '\0');
    for (char& c : contents) c = static_cast<char>(random());
    const char* const place = Put(*arena, contents);
    EXPECT_EQ(before, expected);
    EXPECT_TRUE(arena->Seal(size).ok());
    before = {place, size};
    expected = contents;
    EXPECT_EQ(arena->Newest()->contents, expected);
  }
  arena.reset();
  EXPECT_EQ(Open()->Newest()->contents, expected);
}

TEST_F(CommitArenaTest, Begin_OlderCommitIsBeingRead_KeepsIt) {
  Arena arena = Open();
  const char* const read = Put(*arena, "read");
  EXPECT_TRUE(arena->Seal(1).ok());
  for (int i = 2; i < 6; ++i) {
    Put(*arena, "xxxx", read);
    EXPECT_TRUE(arena->Seal(i).ok());
    EXPECT_EQ(absl::string_view(read, 4), "read");
  }
}

TEST_F(CommitArenaTest, Begin_AnySize_CanBeOfHugePagesAndHasItsMemory) {
  Arena arena = Open();
  for (const size_t size : {size_t{1}, kHugePageBytes, 3 * kHugePageBytes + 1}) {
    const char* const place = arena->Begin(size).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(place) % kHugePageBytes, 0u);
    for (size_t page = 0; page < size; page += 4096) {
      unsigned char is_there = 0;
      ASSERT_EQ(mincore(const_cast<char*>(place) + page, 1, &is_there), 0);
      ASSERT_TRUE((is_there & 1) != 0) << page;
    }
  }
}

TEST_F(CommitArenaTest, Begin_PagesExist_KeepsTheirContent) {
  const std::string contents(3 * kHugePageBytes, 'x');
  {
    Arena arena = Open();
    Commit(*arena, 1, contents);
    Commit(*arena, 2, "newer");
  }
  // Small pages of an earlier process may become parts of huge ones.
  Arena arena = Open();
  const char* const place = arena->Begin(contents.size()).value();
  EXPECT_EQ(absl::string_view(place, contents.size()), contents);
  EXPECT_EQ(Text(*arena), "2:newer");
}

TEST_F(CommitArenaTest, Begin_NoMemory_LeavesTheNewest) {
  Arena arena = Open();
  Commit(*arena, 1, "contents");
  EXPECT_EQ(arena->Begin(size_t{1} << 50).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Text(*arena), "1:contents");
}

TEST_F(CommitArenaTest, Newest_Damaged_IsTheOneBefore) {
  Arena arena = Open();
  Commit(*arena, 1, "older");
  const char* const place = Put(*arena, "newer");
  EXPECT_TRUE(arena->Seal(2).ok());
  const_cast<char*>(place)[2] ^= 1;
  EXPECT_EQ(Text(*arena), "1:older");
}

TEST_F(CommitArenaTest, Open_AnotherJobs_IsEmpty) {
  Commit(*Open("one"), 3, "contents");
  EXPECT_EQ(Text(*Open("two")), "none");
}

TEST_F(CommitArenaTest, Open_FilesAreLimited_IsAnError) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &small);
    _exit(absl::IsResourceExhausted(CommitArena::Open(Handed(), "job").status()) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A state whose size and bytes follow from one number.
std::string ContentsOf(uint64_t number) {
  std::mt19937_64 random(number);
  std::string contents(1 + random() % 1400000, '\0');
  for (size_t i = 0; i + 8 <= contents.size(); i += 8) {
    const uint64_t word = random();
    memcpy(&contents[i], &word, 8);
  }
  return contents;
}

// Makes commits, and writes a byte before each step to say which step it is.
void CommitForEver(const Fd& memory, int progress) {
  ThreadTeam team;
  const Arena arena = CommitArena::Open(Fd(dup(memory.get())), "job").value();
  const auto newest = arena->Newest();
  uint64_t number = newest.has_value() ? newest->number : 0;
  while (true) {
    const std::string contents = ContentsOf(++number);
    (void)!write(progress, "b", 1);
    if (!arena->Begin(contents.size()).ok()) _exit(1);
    // Of a size that both threads have something to copy.
    constexpr size_t kPart = size_t{640} << 10;
    for (size_t at = 0; at < contents.size(); at += kPart) {
      (void)!write(progress, "a", 1);
      const absl::string_view part = absl::string_view(contents).substr(at, kPart);
      if (!arena->AppendAll({part}, team, /*threads=*/2).ok()) _exit(1);
    }
    (void)!write(progress, "s", 1);
    if (!arena->Seal(number).ok()) _exit(1);
    (void)!write(progress, "d", 1);
  }
}

TEST_F(CommitArenaTest, Killed_AtAnyMoment_LosesNothingSealed) {
  std::mt19937 random(std::random_device{}());
  uint64_t sealed = 0;
  for (int round = 0; round < 40; ++round) {
    Pipe pipe = MakePipe().value();
    const pid_t child = fork();
    if (child == 0) CommitForEver(memory_, pipe.write.get());
    pipe.write.reset();
    char done = 0;
    for (unsigned left = 1 + random() % 25; left > 0 && read(pipe.read.get(), &done, 1) == 1;
         --left) {
      if (done == 'd') ++sealed;
    }
    for (unsigned spin = random() % 20000; spin > 0; --spin) asm volatile("");
    kill(child, SIGKILL);
    while (read(pipe.read.get(), &done, 1) == 1) {
      if (done == 'd') ++sealed;
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    const Arena arena = Open();
    const auto newest = arena->Newest();
    ASSERT_TRUE(newest.has_value() || sealed == 0);
    if (!newest.has_value()) continue;
    ASSERT_GE(newest->number, sealed);
    ASSERT_LE(newest->number, sealed + 1) << "it had not said so yet";
    ASSERT_TRUE(newest->contents == ContentsOf(newest->number)) << newest->number;
    sealed = newest->number;
  }
  EXPECT_GT(sealed, 0u);
}

TEST_F(CommitArenaTest, Open_UsedByAnotherProcess_FailedPrecondition) {
  Pipe pipe = MakePipe().value();
  const pid_t child = fork();
  if (child == 0) CommitForEver(memory_, pipe.write.get());
  char byte = 0;
  ASSERT_EQ(read(pipe.read.get(), &byte, 1), 1);
  EXPECT_EQ(CommitArena::Open(Handed(), "job").status().code(),
            absl::StatusCode::kFailedPrecondition);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(CommitArena::Open(Handed(), "job").ok());
}

}  // namespace
}  // namespace hvd::worker_runtime::commit_store
