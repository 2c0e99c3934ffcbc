#include "base/os/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

class PrivateFolderTest : public testing::Test {
 protected:
  ~PrivateFolderTest() override { std::filesystem::remove_all(path_); }

  static void ExpectRefusal(const absl::Status& status, const std::string& why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
  }

  // As if another user had put it there; only root can do that.
  bool GiveAway(const std::string& name) const {
    return chown((path_ + name).c_str(), 65534, 65534) == 0;
  }

  const std::string path_ = testing::TempDir() + "/private_folder_" + std::to_string(getpid());
};

TEST_F(PrivateFolderTest, Open_MakesIt_ForItsOwnerAlone) {
  ASSERT_TRUE(PrivateFolder::Open(path_).ok());
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_TRUE(PrivateFolder::Open(path_).ok());
}

TEST_F(PrivateFolderTest, Open_OpenToOthers_IsRefused) {
  for (const mode_t mode : {0755, 0777, 0750, 0701}) {
    ASSERT_TRUE(mkdir(path_.c_str(), 0700) == 0 || errno == EEXIST);
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    ExpectRefusal(PrivateFolder::Open(path_).status(), "open to other users");
  }
}

TEST_F(PrivateFolderTest, Open_AnotherUsers_IsRefused) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  if (!GiveAway("")) GTEST_SKIP() << "needs root";
  ExpectRefusal(PrivateFolder::Open(path_).status(), "belongs to another user (uid 65534)");
}

TEST_F(PrivateFolderTest, Open_LinkOfAnotherUserInASharedFolder_IsRefused) {
  ASSERT_EQ(mkdir(path_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(path_.c_str(), 01777), 0);
  // The folder of another job: it passes every check but that of the link.
  ASSERT_TRUE(PrivateFolder::Open(path_ + "/other").ok());
  ASSERT_EQ(symlink("other", (path_ + "/link").c_str()), 0);
  EXPECT_TRUE(PrivateFolder::Open(path_ + "/link").ok());
  if (lchown((path_ + "/link").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "needs root";
  ExpectRefusal(PrivateFolder::Open(path_ + "/link").status(), "it is a link of user 65534");
  ExpectRefusal(PrivateFolder::Open(path_ + "/link/").status(), "it is a link of user 65534");
}

TEST_F(PrivateFolderTest, Open_NoFolder_IsRefused) {
  std::ofstream(path_) << "mine";
  ExpectRefusal(PrivateFolder::Open(path_).status(), path_);
}

TEST_F(PrivateFolderTest, OpenFile_LinksFifosAndFilesOfOthers_AreRefused) {
  auto folder = PrivateFolder::Open(path_);
  const std::string target = path_ + "/target";
  std::ofstream(target) << "precious";
  ASSERT_EQ(chmod(target.c_str(), 0600), 0);
  ASSERT_EQ(symlink(target.c_str(), (path_ + "/link").c_str()), 0);
  ASSERT_EQ(mkfifo((path_ + "/fifo").c_str(), 0600), 0);
  std::ofstream(path_ + "/open") << "planted";
  ASSERT_EQ(chmod((path_ + "/open").c_str(), 0644), 0);
  ExpectRefusal((*folder)->OpenFile("link", O_RDWR).status(), "it is a link");
  ExpectRefusal((*folder)->OpenFile("fifo", O_RDONLY).status(), "it is not a regular file");
  ExpectRefusal((*folder)->OpenFile("open", O_RDONLY).status(), "open to other users");
  EXPECT_TRUE((*folder)->OpenFile("target", O_RDONLY).ok());
  EXPECT_TRUE(absl::IsNotFound((*folder)->OpenFile("none", O_RDONLY).status()));
  if (!GiveAway("/target")) GTEST_SKIP() << "needs root";
  ExpectRefusal((*folder)->OpenFile("target", O_RDONLY).status(), "belongs to another user");
}

// A reader that has opened the earlier file does not see what is written to the new one.
TEST_F(PrivateFolderTest, NewFile_TakesThePlace_OfAFileOrALink) {
  auto folder = PrivateFolder::Open(path_);
  std::ofstream(path_ + "/draft") << "planted";
  std::ifstream reader(path_ + "/draft");
  auto file = (*folder)->NewFile("draft");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(WriteAll(file->get(), "secret").ok());
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "planted");
  const std::string target = path_ + "/target";
  ASSERT_EQ(symlink(target.c_str(), (path_ + "/other").c_str()), 0);
  EXPECT_TRUE((*folder)->NewFile("other").ok());
  EXPECT_FALSE(std::filesystem::exists(target));
  ASSERT_TRUE((*folder)->Rename("draft", "kept").ok());
  EXPECT_TRUE((*folder)->Sync().ok());
  EXPECT_TRUE((*folder)->OpenFile("kept", O_RDONLY).ok());
}

TEST_F(PrivateFolderTest, NameIsGivenToAnotherFolder_TheFolderItselfIsUsed) {
  auto folder = PrivateFolder::Open(path_);
  const std::string aside = path_ + ".aside";
  ASSERT_EQ(rename(path_.c_str(), aside.c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0777), 0);
  EXPECT_TRUE((*folder)->NewFile("file").ok());
  EXPECT_TRUE(std::filesystem::exists(aside + "/file"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/file"));
  std::filesystem::remove_all(aside);
}

TEST_F(PrivateFolderTest, OpenFolder_IsInTheFolderItself_AndFollowsNoLink) {
  auto folder = PrivateFolder::Open(path_);
  const std::string aside = path_ + ".aside";
  ASSERT_EQ(rename(path_.c_str(), aside.c_str()), 0);
  auto inner = (*folder)->OpenFolder("inner");
  ASSERT_TRUE(inner.ok()) << inner.status();
  EXPECT_EQ((*inner)->path(), path_ + "/inner");
  EXPECT_TRUE((*inner)->NewFile("file").ok());
  EXPECT_TRUE(std::filesystem::exists(aside + "/inner/file"));
  EXPECT_TRUE((*folder)->OpenFolder("inner").ok()) << "it is there already";
  ASSERT_EQ(symlink("inner", (aside + "/link").c_str()), 0);
  ExpectRefusal((*folder)->OpenFolder("link").status(), path_ + "/link");
  ASSERT_EQ(chmod((aside + "/inner").c_str(), 0755), 0);
  ExpectRefusal((*folder)->OpenFolder("inner").status(), "open to other users");
  std::filesystem::remove_all(aside);
}

TEST_F(PrivateFolderTest, RemoveAll_FollowsNoLink) {
  auto folder = PrivateFolder::Open(path_);
  ASSERT_TRUE((*folder)->OpenFolder("kept").ok());
  std::ofstream(path_ + "/kept/file") << "precious";
  ASSERT_TRUE((*folder)->OpenFolder("gone").ok());
  std::filesystem::create_directories(path_ + "/gone/deep/er");
  std::ofstream(path_ + "/gone/deep/file") << "x";
  ASSERT_EQ(symlink("../kept", (path_ + "/gone/link").c_str()), 0);
  EXPECT_EQ((*folder)->Names(), (std::vector<std::string>{"gone", "kept"}));
  (*folder)->RemoveAll("gone");
  (*folder)->RemoveAll("none");
  EXPECT_FALSE((*folder)->Has("gone"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/kept/file"));
  ASSERT_EQ(symlink("nowhere", (path_ + "/link").c_str()), 0);
  EXPECT_TRUE((*folder)->Has("link"));
}

}  // namespace
}  // namespace hvd::os
