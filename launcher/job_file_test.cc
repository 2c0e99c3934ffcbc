#include "launcher/job_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

class JobFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/job_file.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    parent_ = name;
    directory_ = parent_ + "/horovod";
  }
  void TearDown() override { std::filesystem::remove_all(parent_); }

  static pb::JobFile Job(const std::string& id) {
    pb::JobFile job;
    job.set_job_id(id);
    job.set_pid(7);
    job.add_addresses("127.0.0.1:1");
    job.mutable_credentials()->set_token("secret \"token\"\n");
    return job;
  }

  std::string parent_;
  std::string directory_;
};

TEST_F(JobFileTest, Write_RunningJob_IsFoundUntilItEnds) {
  EXPECT_TRUE(RunningJobs(directory_)->empty());
  auto second = JobFile::Write(directory_, Job("b"));
  ASSERT_TRUE(second.ok()) << second.status();
  auto first = JobFile::Write(directory_, Job("a"));
  ASSERT_TRUE(first.ok()) << first.status();
  auto jobs = RunningJobs(directory_);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].DebugString(), Job("a").DebugString());
  first->reset();
  EXPECT_EQ(RunningJobs(directory_)->size(), 1u);
  second->reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(JobFileTest, Write_SecretsAreTheUsersAlone) {
  auto file = JobFile::Write(directory_, Job("a"));
  ASSERT_TRUE(file.ok());
  struct stat info {};
  ASSERT_EQ(stat((directory_ + "/a.job").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(JobFileTest, Write_DirectoryThatOthersCanUse_IsRefused) {
  ASSERT_EQ(mkdir(directory_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_THAT(std::string(JobFile::Write(directory_, Job("a")).status().message()),
              HasSubstr("is not a directory that only you can use"));
  EXPECT_EQ(RunningJobs(directory_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobFileTest, Write_LinkInsteadOfADirectory_IsRefused) {
  std::filesystem::create_directory_symlink(parent_, directory_);
  EXPECT_FALSE(JobFile::Write(directory_, Job("a")).ok());
}

TEST_F(JobFileTest, RunningJobs_FileOfAKilledJob_IsRemoved) {
  ASSERT_EQ(mkdir(directory_.c_str(), 0700), 0);
  std::ofstream(directory_ + "/dead.job") << "job_id: \"dead\"\n";
  EXPECT_TRUE(RunningJobs(directory_)->empty());
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST(JobFileDirectory, IsInTheRuntimeDirectoryOrInTmp) {
  EXPECT_EQ(JobFileDirectory({{"XDG_RUNTIME_DIR", "/run/user/7"}}), "/run/user/7/horovod");
  const std::string fallback = absl::StrCat("/tmp/horovod-", geteuid());
  EXPECT_EQ(JobFileDirectory({}), fallback);
  EXPECT_EQ(JobFileDirectory({{"XDG_RUNTIME_DIR", "here"}}), fallback);
}

}  // namespace
}  // namespace hvd
