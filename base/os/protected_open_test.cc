#include "base/os/protected_open.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

constexpr uid_t kStranger = 12345;

class ProtectedOpenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/open.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::filesystem::create_directories(In("target"));
    std::filesystem::create_directories(In("shared/sub"));
    chmod(In("shared").c_str(), 01777);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  // Needs root.
  bool GiveAway(const std::string& name) const {
    return lchown(In(name).c_str(), kStranger, kStranger) == 0;
  }
  // The reason why a folder is refused; "" if it is not.
  std::string Refusal(const std::string& name) const {
    return std::string(OpenProtected(In(name), O_RDONLY | O_DIRECTORY).status().message());
  }

  std::string folder_;
};

TEST_F(ProtectedOpenTest, OwnFoldersAndLinksAreOpened) {
  std::filesystem::create_symlink("../target", In("shared/link"));
  std::filesystem::create_symlink(In("shared/link/"), In("second"));
  for (const char* name : {"shared", "shared/sub/", "shared/link", "shared/link/", "second"}) {
    EXPECT_EQ(Refusal(name), "") << name;
  }
}

TEST_F(ProtectedOpenTest, ReasonsAreNamed) {
  std::ofstream(In("file")) << "text";
  EXPECT_EQ(Refusal("file"), "Not a directory");
  EXPECT_TRUE(absl::IsNotFound(OpenProtected(In("nothing"), O_RDONLY).status()));
}

TEST_F(ProtectedOpenTest, LinkOfAnotherUserToAFolder_IsRefused) {
  std::filesystem::create_symlink(In("target"), In("shared/link"));
  if (!GiveAway("shared/link")) GTEST_SKIP() << "needs root";
  std::filesystem::create_symlink(In("shared/link"), In("own"));
  for (const char* name : {"shared/link", "shared/link/", "own"}) {
    EXPECT_EQ(Refusal(name), "it is a link of user 12345, in a folder that all users may write to")
        << name;
  }
}

TEST_F(ProtectedOpenTest, FolderOfAnotherUserInASharedFolder_IsRefused) {
  if (!GiveAway("shared/sub")) GTEST_SKIP() << "needs root";
  EXPECT_EQ(Refusal("shared/sub"),
            "it is a folder of user 12345, in a folder that all users may write to");
  ASSERT_TRUE(GiveAway("target"));
  EXPECT_EQ(Refusal("target"), "");
}

TEST_F(ProtectedOpenTest, CheckOwner_FolderOfAnotherUserInASharedFolder_IsRefused) {
  EXPECT_TRUE(CheckOwner(In("nothing")).ok());
  EXPECT_TRUE(CheckOwner(In("shared/")).ok());
  EXPECT_TRUE(CheckOwner(In("shared/sub")).ok());
  if (!GiveAway("shared/sub")) GTEST_SKIP() << "needs root";
  EXPECT_TRUE(absl::IsPermissionDenied(CheckOwner(In("shared/sub/"))));
}

class OutputFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/open.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::filesystem::create_directory(In("shared"));
    chmod(In("shared").c_str(), 01777);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  // What the file has after "new" was written to it, or the error.
  std::string Write(const std::string& name, OldContent old = OldContent::kDropped) const {
    const absl::StatusOr<Fd> file = OpenOutputFile(In(name), old, 0644);
    if (!file.ok()) return std::string(file.status().message());
    EXPECT_EQ(write(file->get(), "new", 3), 3);
    std::stringstream text;
    text << std::ifstream(In(name)).rdbuf();
    return text.str();
  }
  // Needs root.
  void LinkOfStranger(const std::string& name, const std::string& target) const {
    std::filesystem::create_symlink(target, In(name));
    if (lchown(In(name).c_str(), kStranger, kStranger) != 0) GTEST_SKIP() << "needs root";
  }

  std::string folder_;
};

TEST_F(OutputFileTest, OldContentIsKeptOrDropped) {
  EXPECT_EQ(Write("a"), "new");
  EXPECT_EQ(Write("a", OldContent::kKept), "newnew");
  EXPECT_EQ(Write("a"), "new");
}

TEST_F(OutputFileTest, OwnLinksAreFollowed) {
  std::filesystem::create_symlink("target", In("link"));
  std::filesystem::create_symlink(In("link"), In("shared/second"));
  EXPECT_EQ(Write("shared/second"), "new");
  EXPECT_TRUE(std::filesystem::exists(In("target")));
  std::filesystem::create_symlink("round", In("round"));
  EXPECT_EQ(Write("round"), "Too many levels of symbolic links");
}

TEST_F(OutputFileTest, LinksOfTheKernelAreFollowed) {
  Pipe pipe = MakePipe().value();
  const std::string fd = "/fd/" + std::to_string(pipe.write.get());
  for (const std::string& path : {"/dev" + fd, "/proc/self" + fd}) {
    EXPECT_TRUE(OpenOutputFile(path, OldContent::kKept, 0644).ok()) << path;
  }
}

TEST_F(OutputFileTest, LinkOfAnotherUserInASharedFolder_IsRefused) {
  LinkOfStranger("shared/link", In("target"));
  if (IsSkipped()) return;
  EXPECT_EQ(Write("shared/link"),
            "it is a link of user 12345, in a folder that all users may write to");
  EXPECT_FALSE(std::filesystem::exists(In("target")));
  // Also without the sticky bit.
  chmod(In("shared").c_str(), 0777);
  EXPECT_TRUE(absl::StrContains(Write("shared/link"), "user 12345"));
  // The owner of a folder may do what he likes there.
  ASSERT_EQ(chown(In("shared").c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(Write("shared/link"), "new");
}

TEST_F(OutputFileTest, LinkOfAnotherUserInAPrivateFolder_IsFollowed) {
  LinkOfStranger("link", In("target"));
  if (IsSkipped()) return;
  EXPECT_EQ(Write("link"), "new");
}

TEST_F(OutputFileTest, ReasonsAreNamed) {
  EXPECT_EQ(Write("no/file"), "No such file or directory");
  EXPECT_EQ(Write("shared"), "Is a directory");
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  EXPECT_EQ(Write("pipe"), "it is a pipe that nobody reads");
}

TEST_F(OutputFileTest, FileOfAnotherUserInASharedFolder_IsRefusedUnchanged) {
  std::ofstream(In("shared/theirs")) << "old";
  if (chown(In("shared/theirs").c_str(), kStranger, kStranger) != 0) GTEST_SKIP() << "needs root";
  std::filesystem::create_symlink(In("shared/theirs"), In("own"));
  for (const mode_t mode : {01777, 0777}) {  // the kernel may refuse it only with the sticky bit
    chmod(In("shared").c_str(), mode);
    for (const OldContent old : {OldContent::kKept, OldContent::kDropped}) {
      for (const char* name : {"shared/theirs", "own"}) {
        EXPECT_EQ(Write(name, old),
                  "it is a file of user 12345, in a folder that all users may write to");
        EXPECT_EQ(std::filesystem::file_size(In("shared/theirs")), 3u);
      }
    }
  }
}

TEST_F(OutputFileTest, PipeOfAnotherUserInASharedFolder_IsRefused) {
  chmod(In("shared").c_str(), 0777);
  ASSERT_EQ(mkfifo(In("shared/pipe").c_str(), 0666), 0);
  const Fd reader(open(In("shared/pipe").c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_TRUE(OpenOutputFile(In("shared/pipe"), OldContent::kKept, 0644).ok());
  if (chown(In("shared/pipe").c_str(), kStranger, kStranger) != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(OpenOutputFile(In("shared/pipe"), OldContent::kKept, 0644).status().message(),
            "it is a file of user 12345, in a folder that all users may write to");
}

TEST_F(OutputFileTest, SecondNameInASharedFolder_IsRefusedUnchanged) {
  std::ofstream(In("mine")) << "old";
  std::filesystem::create_hard_link(In("mine"), In("shared/trap"));
  EXPECT_EQ(Write("shared/trap"),
            "it has a second name, and is in a folder that all users may write to");
  EXPECT_EQ(std::filesystem::file_size(In("mine")), 3u);
  EXPECT_EQ(Write("mine"), "new");
}

}  // namespace
}  // namespace hvd::os
