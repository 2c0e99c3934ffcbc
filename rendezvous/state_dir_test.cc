#include "rendezvous/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

class StateDirTest : public testing::Test {
 protected:
  ~StateDirTest() override {
    for (const char* name : {"/job.pb", "/job.pb.new", "/lock", "/journal"}) {
      unlink((path_ + name).c_str());
    }
    rmdir(path_.c_str());
  }

  static pb::journal::Job Job() {
    pb::journal::Job job;
    job.set_job_id("id");
    job.set_secret_key("key");
    return job;
  }

  mode_t ModeOf(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(stat((path_ + name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  }

  const std::string path_ = testing::TempDir() + "/state_dir_" + std::to_string(getpid());
};

TEST_F(StateDirTest, Open_MakesTheDirectory_AndNoJobIsInIt) {
  const auto dir = StateDir::Open(path_);
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_FALSE((*dir)->job().has_value());
  EXPECT_EQ(ModeOf(""), 0700u);
}

TEST_F(StateDirTest, Save_IsThereTheNextTime_AndTheOwnersAlone) {
  {
    const auto dir = StateDir::Open(path_);
    ASSERT_TRUE((*dir)->Save(Job()).ok());
  }
  const auto dir = StateDir::Open(path_);
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_EQ((*dir)->job()->job_id(), "id");
  EXPECT_EQ((*dir)->job()->secret_key(), "key");
  EXPECT_EQ(ModeOf("/job.pb"), 0600u);
}

TEST_F(StateDirTest, Save_WhileADraftIsLeftFromACrash_Works) {
  const auto dir = StateDir::Open(path_);
  std::ofstream(path_ + "/job.pb.new") << "half";
  EXPECT_TRUE((*dir)->Save(Job()).ok());
}

TEST_F(StateDirTest, Open_Twice_TheSecondIsRefused_UntilTheFirstIsGone) {
  {
    const auto first = StateDir::Open(path_);
    ASSERT_TRUE(first.ok());
    const absl::Status second = StateDir::Open(path_).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(second.message(), path_)) << second;
  }
  EXPECT_TRUE(StateDir::Open(path_).ok());
}

TEST_F(StateDirTest, Open_DamagedJob_DataLoss) {
  ASSERT_TRUE(StateDir::Open(path_).ok());
  for (const char* contents : {"", "\xFF\xFF\xFF"}) {
    std::ofstream(path_ + "/job.pb", std::ios::trunc) << contents;
    EXPECT_EQ(StateDir::Open(path_).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(StateDirTest, Open_OtherFormat_FailedPrecondition) {
  ASSERT_TRUE(StateDir::Open(path_).ok());
  pb::journal::Job job = Job();
  job.set_format(99);
  std::ofstream(path_ + "/job.pb") << job.SerializeAsString();
  EXPECT_EQ(StateDir::Open(path_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StateDirTest, Open_NoPlaceForIt_InvalidArgument) {
  const absl::Status status = StateDir::Open(path_ + "/no/such").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "No such file")) << status;
}

}  // namespace
}  // namespace hvd
