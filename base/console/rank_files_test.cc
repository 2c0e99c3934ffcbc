#include "base/console/rank_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/full_disk.h"

namespace hvd::console {
namespace {

using ::testing::HasSubstr;

class RankFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/rank_files.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Read(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(directory_ + "/" + file).rdbuf();
    return text.str();
  }

  std::string directory_;
};

TEST_F(RankFilesTest, OneProcessWorks) {
  auto files = RankFiles::Create(directory_ + "/new/deep", 1);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_TRUE((*files)->Write(0, false, "out\n").ok());
  ASSERT_TRUE((*files)->Write(0, true, std::string("e\0rr", 4)).ok());
  EXPECT_EQ(Read("new/deep/rank.0/stdout"), "out\n");
  EXPECT_EQ(Read("new/deep/rank.0/stderr"), std::string("e\0rr", 4));
}

TEST_F(RankFilesTest, FolderOfAnotherUserInASharedOne_IsRefused) {
  chmod(directory_.c_str(), 01777);
  std::filesystem::create_directory(directory_ + "/rank.0");
  if (chown((directory_ + "/rank.0").c_str(), 12345, 12345) != 0) GTEST_SKIP() << "needs root";
  EXPECT_THAT(std::string(RankFiles::Create(directory_, 1).status().message()),
              HasSubstr("/rank.0: it is a folder of user 12345"));
  std::filesystem::remove(directory_ + "/rank.0");
  std::filesystem::create_directory_symlink("/tmp", directory_ + "/link");
  ASSERT_EQ(lchown((directory_ + "/link").c_str(), 12345, 12345), 0);
  EXPECT_THAT(std::string(RankFiles::Create(directory_ + "/link", 1).status().message()),
              HasSubstr("/link: it is a link of user 12345"));
}

TEST_F(RankFilesTest, FileOfAnotherUserInASharedFolder_IsRefusedUnchanged) {
  std::filesystem::create_directory(directory_ + "/rank.0");
  chmod((directory_ + "/rank.0").c_str(), 0777);
  std::ofstream(directory_ + "/rank.0/stdout") << "old";
  if (chown((directory_ + "/rank.0/stdout").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "needs root";
  }
  EXPECT_THAT(std::string(RankFiles::Create(directory_, 1).status().message()),
              HasSubstr("/rank.0/stdout: it is a file of user 12345"));
  EXPECT_EQ(Read("rank.0/stdout"), "old");
}

TEST_F(RankFilesTest, FolderOfARunningJob_IsRefusedUnchanged) {
  auto first = RankFiles::Create(directory_, 1);
  ASSERT_TRUE(first.ok() && (*first)->Write(0, false, "first").ok());
  EXPECT_EQ(std::string(RankFiles::Create(directory_, 2).status().message()),
            "--output-filename: another running job writes to " + directory_ +
                "; give each job a folder of its own");
  EXPECT_EQ(Read("rank.0/stdout"), "first");
  first->reset();
  EXPECT_TRUE(RankFiles::Create(directory_, 2).ok());
}

TEST_F(RankFilesTest, EveryRankHasItsFilesFromTheStart) {
  auto files = RankFiles::Create(directory_, 11);
  ASSERT_TRUE(files.ok());
  ASSERT_TRUE((*files)->Write(10, false, "a").ok());
  ASSERT_TRUE((*files)->Write(10, false, "b").ok());
  EXPECT_EQ(Read("rank.10/stdout"), "ab");
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/rank.03/stderr"));
  EXPECT_FALSE((*files)->Write(11, false, "x").ok());
  EXPECT_FALSE((*files)->Write(-1, false, "x").ok());
}

TEST_F(RankFilesTest, OldContentGoes) {
  ASSERT_TRUE((*RankFiles::Create(directory_, 1))->Write(0, false, "old").ok());
  ASSERT_TRUE(RankFiles::Create(directory_, 1).ok());
  EXPECT_EQ(Read("rank.0/stdout"), "");
}

// In a folder where others may write, a link could make this process overwrite a file of its user.
TEST_F(RankFilesTest, LinksAndPipes_AreNotFollowed) {
  const std::string precious = directory_ + "/precious";
  std::ofstream(precious) << "mine";
  std::filesystem::create_directory(directory_ + "/rank.0");
  std::filesystem::create_symlink(precious, directory_ + "/rank.0/stdout");
  absl::Status status = RankFiles::Create(directory_, 1).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank.0/stdout: it is a link"));
  EXPECT_EQ(Read("precious"), "mine");
  std::filesystem::remove(directory_ + "/rank.0/stdout");
  ASSERT_EQ(mkfifo((directory_ + "/rank.0/stdout").c_str(), 0600), 0);
  status = RankFiles::Create(directory_, 1).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank.0/stdout"));
}

TEST_F(RankFilesTest, LaterRankStartsANewFileAndAppends) {
  std::filesystem::create_directory(directory_ + "/rank.2");
  std::ofstream(directory_ + "/rank.2/stdout") << "of an earlier job";
  auto files = RankFiles::Create(directory_, 2, RankFiles::Ranks::kMayGrow);
  ASSERT_TRUE(files.ok());
  ASSERT_TRUE((*files)->Write(2, false, "a").ok());
  ASSERT_TRUE((*files)->Write(2, false, "b").ok());
  EXPECT_EQ(Read("rank.2/stdout"), "ab");
  EXPECT_FALSE((*files)->Write(-1, false, "x").ok());
}

TEST_F(RankFilesTest, Write_FullFileIsRotated) {
  auto files = RankFiles::Create(directory_, 1, RankFiles::Ranks::kFixed, {10, 2});
  ASSERT_TRUE(files.ok());
  for (const char* line :
       {"first\n", "abc\n", "second\n", "a line longer than a file\n", "last\n"}) {
    ASSERT_TRUE((*files)->Write(0, false, line).ok());
  }
  EXPECT_EQ(Read("rank.0/stdout"), "last\n");
  EXPECT_EQ(Read("rank.0/stdout.1"), "a line longer than a file\n");
  EXPECT_EQ(Read("rank.0/stdout.2"), "second\n");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/rank.0/stdout.3"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/rank.0/stderr.1"));
}

TEST_F(RankFilesTest, Write_FileOfExactlyTheSizeIsNotFull) {
  auto files = RankFiles::Create(directory_, 1, RankFiles::Ranks::kFixed, {6, 1});
  ASSERT_TRUE((*files)->Write(0, false, "abc").ok());
  ASSERT_TRUE((*files)->Write(0, false, "def").ok());
  EXPECT_EQ(Read("rank.0/stdout"), "abcdef");
}

TEST_F(RankFilesTest, Write_WithoutOlderFilesTheFullOneIsEmptied) {
  auto files = RankFiles::Create(directory_, 1, RankFiles::Ranks::kFixed, {4, 0});
  ASSERT_TRUE((*files)->Write(0, false, "abc\n").ok());
  ASSERT_TRUE((*files)->Write(0, false, "def\n").ok());
  EXPECT_EQ(Read("rank.0/stdout"), "def\n");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/rank.0/stdout.1"));
}

TEST_F(RankFilesTest, Create_RemovesWhatAnEarlierJobRotated) {
  std::filesystem::create_directory(directory_ + "/rank.0");
  std::ofstream(directory_ + "/rank.0/stdout.1") << "old";
  std::ofstream(directory_ + "/rank.0/stdout.2") << "older";
  ASSERT_TRUE(RankFiles::Create(directory_, 1).ok());
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/rank.0/stdout.1"));
  ASSERT_TRUE(RankFiles::Create(directory_, 1, RankFiles::Ranks::kFixed, {10, 1}).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/rank.0/stdout.1"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/rank.0/stdout.2"));
}

TEST_F(RankFilesTest, ImpossibleDirectoryIsNamed) {
  std::ofstream(directory_ + "/file") << "x";
  auto files = RankFiles::Create(directory_ + "/file", 1);
  EXPECT_THAT(std::string(files.status().message()), HasSubstr(directory_ + "/file"));
}

TEST_F(RankFilesTest, NoDirectoryMeansNoFiles) { EXPECT_EQ(*RankFiles::Create("", 2), nullptr); }

TEST_F(RankFilesTest, FullDiskIsAnError) {
  auto files = RankFiles::Create(directory_, 1);
  ASSERT_TRUE(files.ok());
  const FullDisk full;
  EXPECT_THAT(std::string((*files)->Write(0, false, "x").message()), HasSubstr("File too large"));
}

}  // namespace
}  // namespace hvd::console
