#include "rendezvous/daemon/persistent_job.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/store/file_job_store.h"

namespace hvd::rendezvous::daemon {
namespace {

class PersistentJobTest : public testing::Test {
 protected:
  ~PersistentJobTest() override {
    for (const char* name : {"/job.pb", "/lock"}) unlink((path_ + name).c_str());
    rmdir(path_.c_str());
  }

  absl::StatusOr<PersistentJob> Open() {
    const auto dir = store::FileJobStore::Open(path_);
    EXPECT_TRUE(dir.ok()) << dir.status();
    return OpenPersistentJob(**dir, spec_, listen_);
  }

  const std::string path_ = testing::TempDir() + "/kept_job_" + std::to_string(getpid());
  policy::JobSpec spec_;
  std::vector<std::string> listen_ = {"127.0.0.1:0", "127.0.0.2:0"};
};

TEST_F(PersistentJobTest, SecondTime_EverythingIsTheSame) {
  const auto first = Open();
  const auto second = Open();
  ASSERT_TRUE(first.ok() && second.ok()) << second.status();
  EXPECT_EQ(second->job_id, first->job_id);
  EXPECT_EQ(second->secret_key, first->secret_key);
  EXPECT_EQ(second->secret_key.size(), 32u);
  for (const auto member : {&PersistentJob::daemon, &PersistentJob::hosts}) {
    EXPECT_EQ(((*second).*member).token, ((*first).*member).token);
    EXPECT_EQ(((*second).*member).ca_certificate, ((*first).*member).ca_certificate);
    EXPECT_EQ(((*second).*member).certificate, ((*first).*member).certificate);
    EXPECT_EQ(((*second).*member).private_key, ((*first).*member).private_key);
  }
  EXPECT_EQ(second->listen, listen_) << "it was never served";
}

TEST_F(PersistentJobTest, AddressesOfBefore_AreListenedOnAgain) {
  ASSERT_TRUE(Open().ok());
  const std::vector<std::string> addresses = {"127.0.0.1:4711", "127.0.0.2:4712"};
  ASSERT_TRUE(KeepAddresses(**store::FileJobStore::Open(path_), addresses).ok());
  EXPECT_EQ(Open()->listen, addresses);
}

TEST_F(PersistentJobTest, OtherOptions_AreRefusedByName) {
  ASSERT_TRUE(Open().ok());
  spec_.max_workers = 7;
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Open().status().message()),
              testing::HasSubstr("started with other options (--np); give"));
  spec_.max_workers = 1;
  listen_[0] = "127.0.0.1:4711";
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Open().status().message()),
              testing::HasSubstr("(--listen, which was 127.0.0.1:0, 127.0.0.2:0); give"));
}

}  // namespace
}  // namespace hvd::rendezvous::daemon
