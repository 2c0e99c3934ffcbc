#include "rendezvous/daemon/file_job_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::daemon {
namespace {

class FileJobStoreTest : public testing::Test {
 protected:
  ~FileJobStoreTest() override {
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

  void Put(const std::string& name, const std::string& contents) const {
    std::ofstream(path_ + name, std::ios::trunc) << contents;
    ASSERT_EQ(chmod((path_ + name).c_str(), 0600), 0);
  }

  mode_t ModeOf(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(stat((path_ + name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  }

  const std::string path_ = testing::TempDir() + "/state_dir_" + std::to_string(getpid());
};

TEST_F(FileJobStoreTest, Open_MakesTheDirectory_AndNoJobIsInIt) {
  const auto dir = FileJobStore::Open(path_);
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_FALSE((*dir)->identity().has_value());
  EXPECT_EQ(ModeOf(""), 0700u);
}

TEST_F(FileJobStoreTest, Save_IsThereTheNextTime_AndTheOwnersAlone) {
  {
    const auto dir = FileJobStore::Open(path_);
    ASSERT_TRUE((*dir)->SaveIdentity(Job()).ok());
  }
  const auto dir = FileJobStore::Open(path_);
  ASSERT_TRUE(dir.ok()) << dir.status();
  EXPECT_EQ((*dir)->identity()->job_id(), "id");
  EXPECT_EQ((*dir)->identity()->secret_key(), "key");
  EXPECT_EQ(ModeOf("/job.pb"), 0600u);
}

TEST_F(FileJobStoreTest, Save_WhileADraftIsLeftFromACrash_Works) {
  const auto dir = FileJobStore::Open(path_);
  std::ofstream(path_ + "/job.pb.new") << "half";
  EXPECT_TRUE((*dir)->SaveIdentity(Job()).ok());
}

TEST_F(FileJobStoreTest, Open_Twice_TheSecondIsRefused_UntilTheFirstIsGone) {
  {
    const auto first = FileJobStore::Open(path_);
    ASSERT_TRUE(first.ok());
    const absl::Status second = FileJobStore::Open(path_).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(second.message(), path_)) << second;
  }
  EXPECT_TRUE(FileJobStore::Open(path_).ok());
}

TEST_F(FileJobStoreTest, Open_DamagedJob_DataLoss) {
  ASSERT_TRUE(FileJobStore::Open(path_).ok());
  for (const char* contents : {"", "\xFF\xFF\xFF"}) {
    Put("/job.pb", contents);
    EXPECT_EQ(FileJobStore::Open(path_).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(FileJobStoreTest, Open_OtherFormat_FailedPrecondition) {
  ASSERT_TRUE(FileJobStore::Open(path_).ok());
  pb::journal::Job job = Job();
  job.set_format(99);
  Put("/job.pb", job.SerializeAsString());
  EXPECT_EQ(FileJobStore::Open(path_).status().code(), absl::StatusCode::kFailedPrecondition);
}

// Whoever could put it there would have the daemon run with keys of his.
TEST_F(FileJobStoreTest, Open_PlantedJobOrLinkOrOpenFolder_InvalidArgument) {
  ASSERT_TRUE(FileJobStore::Open(path_).ok());
  Put("/elsewhere", Job().SerializeAsString());
  ASSERT_EQ(symlink((path_ + "/elsewhere").c_str(), (path_ + "/job.pb").c_str()), 0);
  absl::Status status = FileJobStore::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), path_ + "/job.pb: it is a link")) << status;
  ASSERT_EQ(unlink((path_ + "/job.pb").c_str()), 0);
  ASSERT_EQ(rename((path_ + "/elsewhere").c_str(), (path_ + "/job.pb").c_str()), 0);
  ASSERT_EQ(chmod((path_ + "/job.pb").c_str(), 0644), 0);
  EXPECT_EQ(FileJobStore::Open(path_).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(chmod((path_ + "/job.pb").c_str(), 0600), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0755), 0);
  status = FileJobStore::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "--state-dir: can't use ")) << status;
}

// A draft that somebody holds open gets no secrets.
TEST_F(FileJobStoreTest, Save_WritesIntoAFileOfItsOwn) {
  const auto dir = FileJobStore::Open(path_);
  std::ofstream(path_ + "/job.pb.new") << "planted";
  std::ifstream reader(path_ + "/job.pb.new");
  ASSERT_TRUE((*dir)->SaveIdentity(Job()).ok());
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "planted");
}

TEST_F(FileJobStoreTest, Open_NoPlaceForIt_InvalidArgument) {
  const absl::Status status = FileJobStore::Open(path_ + "/no/such").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "No such file")) << status;
}

}  // namespace
}  // namespace hvd::rendezvous::daemon
