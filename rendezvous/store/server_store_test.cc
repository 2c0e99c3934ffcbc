#include "rendezvous/store/server_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "rendezvous/store/file_job_store.h"

namespace hvd::rendezvous::store {
namespace {

class ServerStoreTest : public testing::Test {
 protected:
  ~ServerStoreTest() override { std::filesystem::remove_all(path_); }

  static pb::journal::Job Job(const std::string& id) {
    pb::journal::Job job;
    job.set_job_id(id);
    return job;
  }

  // The store of a new job.
  static std::unique_ptr<JobStore> Begin(ServerStore& store, const std::string& id) {
    auto job = store.OpenJob(id);
    EXPECT_TRUE(job.ok()) << job.status();
    EXPECT_TRUE((*job)->SaveIdentity(Job(id)).ok());
    return std::move(job).value();
  }

  const std::string path_ = testing::TempDir() + "/server_store_" + std::to_string(getpid());
};

TEST_F(ServerStoreTest, Identity_IsThereTheNextTime) {
  {
    const auto store = ServerStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_FALSE((*store)->identity().has_value());
    pb::journal::Server server;
    server.add_addresses("127.0.0.1:7");
    ASSERT_TRUE((*store)->SaveIdentity(server).ok());
  }
  const auto store = ServerStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->identity()->addresses(0), "127.0.0.1:7");
  struct stat info = {};
  EXPECT_EQ(stat((path_ + "/server.pb").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "it has secrets";
}

TEST_F(ServerStoreTest, Open_OtherOwner_IsRefused) {
  const auto store = ServerStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const absl::Status second = ServerStore::Open(path_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.message(), "another process uses " + path_);
}

TEST_F(ServerStoreTest, Open_FolderOfADaemon_IsRefused) {
  ASSERT_TRUE((*FileJobStore::Open(path_))->SaveIdentity(Job("id")).ok());
  const absl::Status status = ServerStore::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "horovod-rendezvousd")) << status;
}

TEST_F(ServerStoreTest, Open_DamagedIdentity_IsRefused) {
  {
    const auto store = ServerStore::Open(path_);
    ASSERT_TRUE(store.ok() && (*store)->SaveIdentity(pb::journal::Server()).ok());
  }
  std::ofstream(path_ + "/server.pb", std::ios::trunc) << "this is none";
  EXPECT_EQ(ServerStore::Open(path_).status().code(), absl::StatusCode::kDataLoss);
}

// New secrets would lock out the agents and workers of the jobs that are there.
TEST_F(ServerStoreTest, Open_IdentityIsGoneAndJobsAreThere_IsRefused) {
  {
    const auto store = ServerStore::Open(path_);
    ASSERT_TRUE(store.ok() && (*store)->SaveIdentity(pb::journal::Server()).ok());
    Begin(**store, "one");
  }
  ASSERT_TRUE(std::filesystem::remove(path_ + "/server.pb"));
  const absl::Status status = ServerStore::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(status.message(), "server.pb is missing; put back")) << status;
}

TEST_F(ServerStoreTest, OtherJobs_AreThoseThatAreNotOpen) {
  auto store = ServerStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  Begin(**store, "one");
  Begin(**store, "../two / of any name");
  const auto open = Begin(**store, "three");
  (*store)->OpenJob("never begun").IgnoreError();
  std::vector<std::string> ids;
  for (const auto& job : (*store)->OpenOtherJobs()) {
    ASSERT_TRUE(job.ok()) << job.status();
    ids.push_back((*job)->identity()->job_id());
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<std::string>{"../two / of any name", "one"}));
  EXPECT_EQ((*store)->OpenJob("three").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServerStoreTest, OtherJobs_DamagedOne_IsAnErrorOfItsOwn) {
  auto store = ServerStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::string path = Begin(**store, "one")->name();
  Begin(**store, "two");
  std::ofstream(path + "/job.pb", std::ios::trunc) << "this is none";
  const auto others = (*store)->OpenOtherJobs();
  ASSERT_EQ(others.size(), 2u);
  EXPECT_NE(others[0].ok(), others[1].ok());
}

TEST_F(ServerStoreTest, RemovedJob_HasLeftNothing) {
  auto store = ServerStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::string path = Begin(**store, "one")->name();
  EXPECT_TRUE((*store)->RemoveJob("one").ok());
  EXPECT_TRUE((*store)->RemoveJob("one").ok()) << "harmless";
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE((*store)->OpenOtherJobs().empty());
  EXPECT_FALSE((*(*store)->OpenJob("one"))->identity().has_value()) << "it would begin anew";
}

TEST_F(ServerStoreTest, Open_FinishesTheRemovalThatACrashHasInterrupted) {
  ASSERT_TRUE(ServerStore::Open(path_).ok());
  std::filesystem::create_directory(path_ + "/removed-1");
  std::ofstream(path_ + "/removed-1/journal") << "events";
  ASSERT_TRUE(ServerStore::Open(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/removed-1"));
}

// As when the scheduler changes its working directory, for example to become a daemon.
TEST_F(ServerStoreTest, FolderGetsAnotherName_ItsJobsAreStillThere) {
  auto store = ServerStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  Begin(**store, "one");
  const std::string aside = path_ + ".aside";
  std::filesystem::rename(path_, aside);
  EXPECT_TRUE((*store)->HasJob("one"));
  EXPECT_EQ((*store)->OpenOtherJobs().size(), 1u);
  Begin(**store, "two");
  EXPECT_TRUE((*store)->RemoveJob("one").ok());
  const auto others = (*store)->OpenOtherJobs();
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ((*others[0])->identity()->job_id(), "two");
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::filesystem::rename(aside, path_);
}

TEST_F(ServerStoreTest, OtherJobs_CopyOfOne_IsAnErrorThatNamesBothFolders) {
  auto store = ServerStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::string own = Begin(**store, "one")->name();
  std::filesystem::copy(own, own + ".bak", std::filesystem::copy_options::recursive);
  std::filesystem::permissions(own + ".bak", std::filesystem::perms::owner_all);
  const auto others = (*store)->OpenOtherJobs();
  ASSERT_EQ(others.size(), 2u);
  EXPECT_TRUE(others[0].ok()) << others[0].status();
  EXPECT_EQ(others[1].status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(others[1].status().message(),
            own + ".bak holds the job one, whose folder is " + own + "; move it there, or away");
}

}  // namespace
}  // namespace hvd::rendezvous::store
