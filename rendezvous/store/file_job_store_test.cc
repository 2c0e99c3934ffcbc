#include "rendezvous/store/file_job_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "rendezvous/journal/record_file.h"

namespace hvd::rendezvous::store {
namespace {

class FileJobStoreTest : public testing::Test {
 protected:
  ~FileJobStoreTest() override {
    for (const char* name : {"/job.pb", "/job.pb.new", "/lock", "/journal", "/journal.new"}) {
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

  std::string Contents(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ + name, std::ios::binary).rdbuf();
    return text.str();
  }

  static absl::Status OpenJournal(FileJobStore& dir) {
    return dir.OpenJournal("id", policy::JobSpec(), absl::UnixEpoch()).status();
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
  Put("/job.pb", journal::EncodeRecord(job.SerializeAsString()));
  EXPECT_EQ(FileJobStore::Open(path_).status().code(), absl::StatusCode::kFailedPrecondition);
  job.set_format(1);  // it had no checksum
  Put("/job.pb", job.SerializeAsString());
  const absl::Status status = FileJobStore::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "format 1")) << status;
}

TEST_F(FileJobStoreTest, Open_AnyBitFlippedOrAnyEndCutOff_DataLossAndOneLine) {
  ASSERT_TRUE((*FileJobStore::Open(path_))->SaveIdentity(Job()).ok());
  const std::string whole = Contents("/job.pb");
  const auto expect_refused = [this](const std::string& contents, size_t at) {
    Put("/job.pb", contents);
    testing::internal::CaptureStderr();
    const absl::Status status = FileJobStore::Open(path_).status();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << at;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << at;
  };
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    expect_refused(damaged, bit);
  }
  for (size_t size = 0; size < whole.size(); ++size) expect_refused(whole.substr(0, size), size);
}

TEST_F(FileJobStoreTest, Open_JobIsGoneAndItsJournalIsThere_DataLoss) {
  {
    const auto dir = FileJobStore::Open(path_);
    ASSERT_TRUE((*dir)->SaveIdentity(Job()).ok() && OpenJournal(**dir).ok());
  }
  ASSERT_EQ(unlink((path_ + "/job.pb").c_str()), 0);
  const absl::Status status = FileJobStore::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "job.pb is missing")) << status;
}

TEST_F(FileJobStoreTest, OpenJournal_GoneOrEmptyThoughTheJobWasServed_DataLoss) {
  pb::journal::Job served = Job();
  served.add_addresses("127.0.0.1:4711");
  {
    const auto dir = FileJobStore::Open(path_);
    ASSERT_TRUE((*dir)->SaveIdentity(Job()).ok());
    ASSERT_TRUE(OpenJournal(**dir).ok());
    ASSERT_TRUE((*dir)->SaveIdentity(served).ok());
    ASSERT_TRUE(OpenJournal(**dir).ok());
  }
  const auto dir = FileJobStore::Open(path_);
  Put("/journal", "");
  EXPECT_EQ(OpenJournal(**dir).code(), absl::StatusCode::kDataLoss);
  ASSERT_EQ(unlink((path_ + "/journal").c_str()), 0);
  const absl::Status status = OpenJournal(**dir);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(status.message(), path_ + "/journal is missing")) << status;
  EXPECT_NE(access((path_ + "/journal").c_str(), F_OK), 0) << "no new one was begun";
}

// The states of the folder after the first start was killed at any point.
TEST_F(FileJobStoreTest, Open_AfterAKillWithinTheFirstStart_TheJobBegins) {
  ASSERT_TRUE(FileJobStore::Open(path_).ok());
  pb::journal::Job served = Job();
  served.add_addresses("127.0.0.1:4711");
  const std::function<void(FileJobStore&)> steps[] = {
      [this](FileJobStore&) { Put("/job.pb.new", "half"); },
      [](FileJobStore& dir) { EXPECT_TRUE(dir.SaveIdentity(Job()).ok()); },
      [this](FileJobStore&) { Put("/journal.new", "half"); },
      [](FileJobStore& dir) { EXPECT_TRUE(OpenJournal(dir).ok()); },
      [this](FileJobStore&) { Put("/job.pb.new", "half"); },
      [&served](FileJobStore& dir) { EXPECT_TRUE(dir.SaveIdentity(served).ok()); },
  };
  for (size_t done = 0; done <= std::size(steps); ++done) {
    for (const char* name : {"/job.pb", "/journal"}) unlink((path_ + name).c_str());
    for (size_t step = 0; step < done; ++step) steps[step](**FileJobStore::Open(path_));
    const auto dir = FileJobStore::Open(path_);
    ASSERT_TRUE(dir.ok()) << done << ": " << dir.status();
    if (!(*dir)->identity().has_value()) {
      ASSERT_TRUE((*dir)->SaveIdentity(Job()).ok()) << done;
    }
    EXPECT_TRUE(OpenJournal(**dir).ok()) << done;
  }
}

// Otherwise another user could make the daemon run with that user's keys.
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
  EXPECT_TRUE(absl::StrContains(status.message(), "can't use ")) << status;
}

// No secrets are written to a temporary file that another process may hold open.
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
}  // namespace hvd::rendezvous::store
