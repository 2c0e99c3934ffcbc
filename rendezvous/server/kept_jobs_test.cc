// Jobs that outlive their scheduler: a later RendezvousServer with the same state directory resumes
// them.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "rendezvous/server/rendezvous_server_test_util.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::server {
namespace {

class KeptJobsTest : public testing::Test {
 protected:
  KeptJobsTest() { Restart(); }
  ~KeptJobsTest() override {
    server_.reset();
    std::filesystem::remove_all(path_);
  }

  // Ends the server, as far as its jobs can see, and starts another one.
  void Restart() {
    server_.reset();
    auto server = RendezvousServer::Start({{"127.0.0.1:0"}, path_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(server).value();
  }

  ServedJobOptions Options(const std::string& id, int min, int max) {
    ServedJobOptions options = scheduler_.Options(min, max);
    options.job_id = id;
    return options;
  }

  std::unique_ptr<ServedJob> Add(ServedJobOptions options) {
    auto job = server_->AddJob(std::move(options));
    EXPECT_TRUE(job.ok()) << job.status();
    return std::move(job).value();
  }

  // A job of one worker that trains, as a server before this one has left it.
  WorkerStart LeaveATrainingJob() {
    auto job = Add(Options("one", 1, 2));
    job->OfferSlots({{"here", 1}});
    WorkerStart start = scheduler_.starts.Next();
    job->ReportStarted(start.worker, 4711);
    EXPECT_TRUE(Join(Bootstrap(start.environment)).get().ok());
    job.reset();
    Restart();
    return start;
  }

  static membership::WorkerExited Exited(WorkerId worker, int code) {
    membership::WorkerExited exit;
    exit.worker = worker;
    exit.exit_code = code;
    return exit;
  }

  const std::string path_ = testing::TempDir() + "/kept_jobs_" + std::to_string(getpid());
  Scheduler scheduler_;
  std::unique_ptr<RendezvousServer> server_;
};

TEST_F(KeptJobsTest, LaterServer_HasTheSameAddressAndCredentials) {
  const std::vector<std::string> addresses = server_->addresses();
  auto job = Add(Options("one", 1, 2));
  const security::PeerCredentials before = job->credentials();
  job.reset();
  Restart();
  EXPECT_EQ(server_->addresses(), addresses);
  job = Add(Options("one", 1, 2));
  EXPECT_EQ(job->credentials().token, before.token);
  EXPECT_EQ(job->credentials().ca_certificate, before.ca_certificate);
  const auto status =
      client::NewGrpcRendezvousClient(addresses[0], before)->GetStatus(absl::InfiniteDuration());
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->job_id(), "one");
}

TEST_F(KeptJobsTest, KeptJobs_AreThoseThatAreNotOnTheServer) {
  EXPECT_TRUE(server_->KeptJobs().empty());
  Add(Options("one", 1, 2)).reset();
  ServedJobOptions of_agents;
  of_agents.job_id = "two";
  of_agents.spec.min_workers = of_agents.spec.max_workers = 3;
  Add(of_agents).reset();
  Restart();
  EXPECT_EQ(server_->KeptJobs().size(), 2u);
  const auto one = Add(Options("one", 1, 2));
  const std::vector<KeptJob> kept = server_->KeptJobs();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].id, "two");
  EXPECT_EQ(kept[0].spec.max_workers, 3);
  EXPECT_FALSE(kept[0].starts_workers);
  EXPECT_FALSE(kept[0].ended.has_value());
  EXPECT_TRUE(kept[0].problem.ok()) << kept[0].problem;
}

TEST_F(KeptJobsTest, CallersOfAJobThatIsNotAddedYet_WaitForIt) {
  auto job = Add(Options("one", 1, 2));
  const security::PeerCredentials credentials = job->credentials();
  const auto call = [&] {
    return client::NewGrpcRendezvousClient(server_->addresses()[0], credentials)
        ->GetStatus(absl::Milliseconds(300))
        .status();
  };
  // Its last attempt is cut off by its timeout, or not.
  const auto tried_again = [](const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  };
  EXPECT_TRUE(call().ok());
  job.reset();
  EXPECT_TRUE(tried_again(call()));
  Restart();
  EXPECT_TRUE(tried_again(call()));
  job = Add(Options("one", 1, 2));
  EXPECT_TRUE(call().ok());
  job.reset();
  EXPECT_TRUE(server_->ForgetJob("one").ok());
  EXPECT_EQ(call().code(), absl::StatusCode::kUnauthenticated) << "they give up";
}

TEST_F(KeptJobsTest, WorkerThatStillRuns_GoesOnInItsWorld) {
  const WorkerStart start = LeaveATrainingJob();
  const auto job = Add(Options("one", 1, 2));
  const std::vector<EarlierWorker> earlier = job->EarlierWorkers();
  ASSERT_EQ(earlier.size(), 1u);
  EXPECT_EQ(earlier[0].worker, start.worker);
  EXPECT_EQ(earlier[0].host, "here");
  EXPECT_EQ(earlier[0].pid, 4711);
  EXPECT_FALSE(job->Describe().hosts.at(0).attached) << "nothing was said of its worker yet";
  job->ReportStarted(start.worker, 4711);
  EXPECT_TRUE(job->EarlierWorkers().empty());
  const membership::Membership::View view = job->Describe();
  EXPECT_EQ(view.state, lifecycle::JobState::kRunning);
  EXPECT_EQ(view.epoch, Epoch(1)) << "nothing was rolled back";
  EXPECT_TRUE(view.hosts.at(0).attached);
  EXPECT_TRUE(scheduler_.starts.empty()) << "it was not started again";
}

TEST_F(KeptJobsTest, WorkerThatHasNotCalledYet_GetsItsCredentialsFromTheLaterServer) {
  auto job = Add(Options("one", 1, 2));
  job->OfferSlots({{"here", 1}});
  const WorkerStart start = scheduler_.starts.Next();
  job.reset();
  Restart();
  job = Add(Options("one", 1, 2));
  const pb::WorkerBootstrap told = Bootstrap(start.environment);
  EXPECT_EQ(told.error(), "");
  job->ReportStarted(start.worker, 4711);
  EXPECT_TRUE(Join(told).get().ok());
}

TEST_F(KeptJobsTest, WorkerThatHasEnded_IsReplaced) {
  const WorkerStart start = LeaveATrainingJob();
  const auto job = Add(Options("one", 1, 2));
  job->ReportExit(Exited(start.worker, 1));
  const WorkerStart next = scheduler_.starts.Next();
  EXPECT_NE(next.worker, start.worker);
  EXPECT_EQ(next.host, "here");
}

TEST_F(KeptJobsTest, WorkerThatNeverWas_IsAskedForAgain) {
  auto job = Add(Options("one", 1, 2));
  job->OfferSlots({{"here", 1}});
  const WorkerStart start = scheduler_.starts.Next();
  job.reset();
  Restart();
  job = Add(Options("one", 1, 2));
  EXPECT_EQ(job->StartAgain(WorkerId(99)).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(job->StartAgain(start.worker).ok());
  const WorkerStart again = scheduler_.starts.Next();
  EXPECT_EQ(again.worker, start.worker);
  EXPECT_EQ(again.environment.at("HOROVOD_WORKER_WORD"),
            start.environment.at("HOROVOD_WORKER_WORD"));
  EXPECT_EQ(job->Describe().failures, 0);
}

TEST_F(KeptJobsTest, WorkerWithoutReport_ItsHostIsLost) {
  Inbox<membership::Notice> notices;  // outlives the job
  ServedJobOptions options = Options("one", 1, 2);
  options.spec.reattach_timeout = absl::ZeroDuration();
  auto job = Add(options);
  job->OfferSlots({{"here", 1}});
  const WorkerStart start = scheduler_.starts.Next();
  job.reset();
  Restart();
  options.on_notice = [&notices](const membership::Notice& notice) { notices.Put(notice); };
  job = Add(options);
  while (notices.Next().kind != membership::Notice::Kind::kHostLost) {
  }
  job->ReportStarted(start.worker, 4711);  // too late: it is not this job's any more
  EXPECT_EQ(scheduler_.stops.Next(), start.worker);
}

TEST_F(KeptJobsTest, NewestOffer_StandsUntilTheNext) {
  LeaveATrainingJob();
  const auto job = Add(Options("one", 1, 2));
  job->ReportStarted(WorkerId(1), 4711);
  job->OfferSlots({{"here", 1}, {"there", 1}});
  EXPECT_EQ(scheduler_.starts.Next().host, "there") << "a new host has a separate agent";
  EXPECT_EQ(job->Describe().hosts.size(), 2u);
}

TEST_F(KeptJobsTest, JobThatHasEnded_LeavesNothing_OnceItWasRemoved) {
  auto job = Add(Options("one", 1, 2));
  job->RequestStop("enough", 3, absl::Seconds(1));
  EXPECT_EQ(scheduler_.verdicts.Next().exit_code, 3);
  job.reset();
  Restart();
  EXPECT_TRUE(server_->KeptJobs().empty());
}

TEST_F(KeptJobsTest, JobThatHasEnded_AndWasNotRemoved_TellsHow) {
  auto job = Add(Options("one", 1, 2));
  job->RequestStop("enough", 3, absl::Seconds(1));
  EXPECT_EQ(scheduler_.verdicts.Next().exit_code, 3);
  const std::string copy = path_ + ".copy";  // as the disk is when the process is killed now
  std::filesystem::copy(path_, copy, std::filesystem::copy_options::recursive);
  job.reset();
  server_.reset();
  std::filesystem::remove_all(path_);
  std::filesystem::rename(copy, path_);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
  }
  Restart();
  const std::vector<KeptJob> kept = server_->KeptJobs();
  ASSERT_EQ(kept.size(), 1u);
  ASSERT_TRUE(kept[0].ended.has_value()) << kept[0].problem;
  EXPECT_EQ(kept[0].ended->exit_code, 3);
  const absl::Status again = server_->AddJob(Options("one", 1, 2)).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(again.message(), "the job has ended")) << again;
  EXPECT_TRUE(server_->ForgetJob("one").ok());
  EXPECT_TRUE(server_->KeptJobs().empty());
}

TEST_F(KeptJobsTest, AddJob_WithOtherOptionsThanBefore_IsRefused) {
  Add(Options("one", 1, 2)).reset();
  Restart();
  EXPECT_EQ(server_->AddJob(Options("one", 1, 3)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ServedJobOptions of_agents = Options("one", 1, 2);
  of_agents.start_worker = nullptr;
  of_agents.stop_worker = nullptr;
  const absl::Status status = server_->AddJob(of_agents).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "start_worker has started")) << status;
  EXPECT_EQ(server_->KeptJobs().size(), 1u) << "it is still there";
}

TEST_F(KeptJobsTest, ForgetJob_OnlyWhatIsKept) {
  auto job = Add(Options("one", 1, 2));
  EXPECT_EQ(server_->ForgetJob("one").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(server_->ForgetJob("two").code(), absl::StatusCode::kNotFound);
  const security::PeerCredentials before = job->credentials();
  job.reset();
  EXPECT_TRUE(server_->ForgetJob("one").ok());
  EXPECT_NE(Add(Options("one", 1, 2))->credentials().token, before.token) << "another job";
}

TEST_F(KeptJobsTest, DamagedJob_IsOneOfItsOwn) {
  Add(Options("one", 1, 2)).reset();
  Add(Options("two", 1, 2)).reset();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    if (entry.path().filename() != "job.pb") continue;
    std::ofstream(entry.path(), std::ios::trunc) << "this is none";
    break;
  }
  Restart();
  const std::vector<KeptJob> kept = server_->KeptJobs();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_NE(kept[0].problem.ok(), kept[1].problem.ok());
}

TEST_F(KeptJobsTest, SecondServer_IsRefusedInOneLine) {
  const absl::Status second = RendezvousServer::Start({{"127.0.0.1:0"}, path_}).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.message(), "another process uses " + path_);
}

TEST_F(KeptJobsTest, ServerElsewhere_IsRefused) {
  server_.reset();
  const absl::Status status = RendezvousServer::Start({{"127.0.0.2:0"}, path_}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "127.0.0.1:0")) << status;
}

}  // namespace
}  // namespace hvd::rendezvous::server
