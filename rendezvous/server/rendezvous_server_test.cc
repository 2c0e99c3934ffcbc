// RendezvousServer: many jobs behind one listener, and workers that no agent started.
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "proto/agent.pb.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "rendezvous/server/rendezvous_server_test_util.h"
#include "rendezvous/server/server.h"

namespace hvd::rendezvous::server {
namespace {

class RendezvousServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = RendezvousServer::Start({{"127.0.0.1:0"}, ""});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(server).value();
  }

  std::unique_ptr<ServedJob> Add(ServedJobOptions options) {
    auto job = server_->AddJob(std::move(options));
    EXPECT_TRUE(job.ok()) << job.status();
    return std::move(job).value();
  }

  absl::StatusOr<pb::GetStatusResponse> StatusBy(const security::PeerCredentials& credentials) {
    return client::NewGrpcRendezvousClient(server_->addresses()[0], credentials)
        ->GetStatus(absl::InfiniteDuration());
  }

  std::unique_ptr<RendezvousServer> server_;
};

TEST_F(RendezvousServerTest, TokenSelectsTheJob) {
  Scheduler scheduler;
  ServedJobOptions options = scheduler.Options(1, 1);
  options.job_id = "one";
  const auto one = Add(options);
  options.job_id = "two";
  const auto two = Add(options);
  EXPECT_EQ(StatusBy(one->credentials())->job_id(), "one");
  EXPECT_EQ(StatusBy(two->credentials())->job_id(), "two");
  security::PeerCredentials mixed = one->credentials();  // any of the server's certificates will do
  mixed.token = two->credentials().token;
  EXPECT_EQ(StatusBy(mixed)->job_id(), "two");
  mixed.token.back() = mixed.token.back() == '0' ? '1' : '0';
  EXPECT_EQ(StatusBy(mixed).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(RendezvousServerTest, JobThatIsGone_LetsNobodyIn_AndTheOthersStay) {
  Scheduler scheduler;
  auto one = Add(scheduler.Options(1, 1));
  const auto two = Add(scheduler.Options(1, 1));
  const security::PeerCredentials credentials = one->credentials();
  one.reset();
  EXPECT_EQ(StatusBy(credentials).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(StatusBy(two->credentials()).ok());
}

TEST_F(RendezvousServerTest, OfferedSlots_WorkersStart_AndFormAWorldWithoutAnAgent) {
  Scheduler scheduler;
  const auto job = Add(scheduler.Options(2, 2));
  job->OfferSlots({{"here", 2, "m"}});
  std::vector<std::future<absl::StatusOr<pb::JoinWorldResponse>>> joins;
  for (int i = 0; i < 2; ++i) {
    const WorkerStart start = scheduler.starts.Next();
    EXPECT_EQ(start.host, "here");
    EXPECT_EQ(start.environment.at("HOROVOD_ELASTIC"), "1");
    const pb::WorkerBootstrap told = Bootstrap(start.environment);
    EXPECT_EQ(told.error(), "");
    EXPECT_EQ(told.worker_id(), start.worker.value());
    EXPECT_EQ(told.host(), "here");
    joins.push_back(Join(told));
  }
  for (auto& join : joins) {
    const auto answer = join.get();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->world().members_size(), 2);
  }
  EXPECT_EQ(job->Describe().state, lifecycle::JobState::kRunning);
  EXPECT_EQ(job->Describe().hosts.at(0).host.machine, "m");
  EXPECT_TRUE(absl::StrContains(server_->Metrics(), "horovod_world_size{job=\"" + job->id()));
}

TEST_F(RendezvousServerTest, Bootstrap_OfAWorkerThatIsNotExpected_IsRefused) {
  Scheduler scheduler;
  const auto job = Add(scheduler.Options(1, 1));
  job->OfferSlots({{"here", 1}});
  WorkerStart start = scheduler.starts.Next();
  start.environment["HOROVOD_WORKER_ID"] = "77";
  EXPECT_NE(Bootstrap(start.environment).error(), "");
}

TEST_F(RendezvousServerTest, RequestStop_StopsWorkers_ThenSlotsAreFree_ThenTheVerdict) {
  Scheduler scheduler;
  const auto job = Add(scheduler.Options(1, 1));
  job->OfferSlots({{"here", 1}});
  const WorkerId worker = scheduler.starts.Next().worker;
  job->ReportStarted(worker, 4711);
  job->RequestStop("enough", 3, absl::Seconds(5));
  EXPECT_EQ(scheduler.stops.Next(), worker);
  membership::WorkerExited exit;
  exit.worker = worker;
  exit.signal = 15;
  job->ReportExit(exit);
  EXPECT_EQ(scheduler.free_hosts.Next(), "here");
  EXPECT_EQ(scheduler.verdicts.Next().exit_code, 3);
}

TEST_F(RendezvousServerTest, WithdrawnHost_IsFreed_AndJoinsAgainWhenOfferedAgain) {
  Scheduler scheduler;
  const auto job = Add(scheduler.Options(1, 2));
  job->OfferSlots({{"a", 1}});
  const WorkerStart first = scheduler.starts.Next();
  ASSERT_TRUE(Join(Bootstrap(first.environment)).get().ok());
  job->OfferSlots({{"a", 1}, {"b", 1}});
  const WorkerStart second = scheduler.starts.Next();
  EXPECT_EQ(second.host, "b");
  const pb::WorkerBootstrap told = Bootstrap(second.environment);
  job->OfferSlots({{"a", 1}});  // before its worker was in any world
  const auto answer = Join(told).get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->has_released()) << answer->ShortDebugString();
  membership::WorkerExited exit;
  exit.worker = second.worker;
  job->ReportExit(exit);
  EXPECT_EQ(scheduler.free_hosts.Next(), "b");
  job->OfferSlots({{"a", 1}, {"b", 1}});
  EXPECT_EQ(scheduler.starts.Next().host, "b");
}

TEST_F(RendezvousServerTest, AddJob_ThatCantBe_IsRefused) {
  Scheduler scheduler;
  EXPECT_EQ(server_->AddJob(scheduler.Options(2, 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
  ServedJobOptions options = scheduler.Options(1, 1);
  options.stop_worker = nullptr;
  EXPECT_EQ(server_->AddJob(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = scheduler.Options(1, 1);
  options.job_id = "one";
  const auto job = Add(options);
  EXPECT_EQ(server_->AddJob(options).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RendezvousServerTest, Metrics_WhileJobsGo_AreAlwaysGiven) {
  std::atomic<bool> over{false};
  std::thread jobs([&] {
    Scheduler scheduler;
    for (int i = 0; i < 300; ++i) Add(scheduler.Options(1, 1))->OfferSlots({{"here", 1}});
    over = true;
  });
  while (!over) EXPECT_NE(server_->Metrics().find("# TYPE horovod_world"), std::string::npos);
  jobs.join();
}

TEST_F(RendezvousServerTest, AddJob_TwiceAtOnce_OneIsRefused) {
  for (int i = 0; i < 50; ++i) {
    Scheduler scheduler;
    ServedJobOptions options = scheduler.Options(1, 1);
    options.job_id = "same";
    auto other = std::async(std::launch::async, [&] { return server_->AddJob(options); });
    const auto job = server_->AddJob(options);
    const auto second = other.get();
    ASSERT_NE(job.ok(), second.ok());
    EXPECT_EQ((job.ok() ? second : job).status().code(), absl::StatusCode::kAlreadyExists);
  }
}

}  // namespace
}  // namespace hvd::rendezvous::server
