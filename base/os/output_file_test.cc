#include "base/os/output_file.h"

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

TEST_F(OutputFileTest, CheckOwner_FolderOfAnotherUserInASharedFolder_IsRefused) {
  EXPECT_TRUE(CheckOwner(In("nothing")).ok());
  EXPECT_TRUE(CheckOwner(In("shared/")).ok());
  std::filesystem::create_directory(In("shared/sub"));
  EXPECT_TRUE(CheckOwner(In("shared/sub")).ok());
  if (chown(In("shared/sub").c_str(), kStranger, kStranger) != 0) GTEST_SKIP() << "needs root";
  EXPECT_TRUE(absl::IsPermissionDenied(CheckOwner(In("shared/sub/"))));
}

}  // namespace
}  // namespace hvd::os
