// The rendezvous as a job uses it: real gRPC over TLS on loopback, the real membership machine.
#include <future>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/rendezvous_job.h"

namespace hvd {
namespace {

// Two hosts with two workers each, all started, whose ids are 1 to 4.
class RendezvousGrpcTest : public testing::Test {
 protected:
  void SetUp() override {
    std::set<uint64_t> started = a_.WaitForStarts(2);
    started.merge(b_.WaitForStarts(2));
    ASSERT_EQ(started, (std::set<uint64_t>{1, 2, 3, 4}));
  }

  // One concurrent call of each worker, each with a separate client.
  template <typename Call>
  auto AllAtOnce(Call call) {
    using Result = decltype(call(*job_.NewClient(), uint64_t{1}));
    std::vector<std::future<Result>> futures;
    for (uint64_t worker = 1; worker <= 4; ++worker) {
      futures.push_back(std::async(
          std::launch::async, [this, call, worker] { return call(*job_.NewClient(), worker); }));
    }
    std::vector<Result> results;
    for (auto& future : futures) results.push_back(future.get());
    return results;
  }

  static pb::JoinWorldRequest JoinOf(uint64_t worker) {
    auto request = From<pb::JoinWorldRequest>(worker);
    request.set_address(absl::StrCat("10.0.0.", worker));
    request.set_port(static_cast<uint32_t>(worker));
    return request;
  }

  static auto Join(rendezvous::client::RendezvousClient& client, uint64_t worker) {
    return client.JoinWorld(JoinOf(worker), absl::InfiniteDuration());
  }

  static auto Watch(rendezvous::client::RendezvousClient& client, uint64_t worker) {
    auto request = From<pb::WatchEpochRequest>(worker);
    request.set_epoch(1);
    return client.WatchEpoch(request, absl::InfiniteDuration());
  }

  static auto Finish(rendezvous::client::RendezvousClient& client, uint64_t worker) {
    auto request = From<pb::ReportRequest>(worker);
    request.set_epoch(1);
    request.mutable_finished();
    return client.Report(request, absl::InfiniteDuration());
  }

  RendezvousJob job_{4, {{"a", 2}, {"b", 2}}};
  PlayedAgent a_{job_, "a", 2};
  PlayedAgent b_{job_, "b", 2};
};

TEST_F(RendezvousGrpcTest, JoinWorld_AllGetTheSameWorld) {
  const auto worlds = AllAtOnce(Join);
  for (const auto& response : worlds) {
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->SerializeAsString(), worlds[0]->SerializeAsString());
  }
  const pb::World& world = worlds[0]->world();
  EXPECT_EQ(world.epoch(), 1u);
  EXPECT_EQ(world.secret().size(), 32u);
  ASSERT_EQ(world.members_size(), 4);
  for (int rank = 0; rank < 4; ++rank) {
    const pb::Member& member = world.members(rank);
    EXPECT_EQ(member.placement().rank(), rank);
    EXPECT_EQ(member.host(), rank < 2 ? "a" : "b");
    EXPECT_EQ(member.address(), absl::StrCat("10.0.0.", member.worker().worker_id()));
  }
}

TEST_F(RendezvousGrpcTest, Exchange_EachGetsAllValuesInRankOrder) {
  AllAtOnce(Join);
  const auto rounds = AllAtOnce([](rendezvous::client::RendezvousClient& client, uint64_t worker) {
    auto request = From<pb::ExchangeRequest>(worker);
    request.set_epoch(1);
    request.set_key("key");
    request.set_value(absl::StrCat("value ", worker));
    return client.Exchange(request, absl::InfiniteDuration());
  });
  for (const auto& round : rounds) {
    ASSERT_TRUE(round.ok()) << round.status();
    ASSERT_EQ(round->values_size(), 4);
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(round->values(rank), absl::StrCat("value ", rank + 1));
    }
  }
}

TEST_F(RendezvousGrpcTest, WorkerExits_WatchersLearnItsRank) {
  AllAtOnce(Join);
  std::vector<std::future<absl::StatusOr<pb::WatchEpochResponse>>> watches;
  for (uint64_t worker = 1; worker <= 3; ++worker) {
    watches.push_back(std::async(std::launch::async,
                                 [this, worker] { return Watch(*job_.NewClient(), worker); }));
  }
  b_.SayExited(4, 3);
  for (auto& watch : watches) {
    const auto told = watch.get();
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_TRUE(absl::StrContains(told->reason(), "rank 3")) << told->reason();
  }
  for (const uint64_t worker : {1, 2}) a_.SayExited(worker, 143);
  b_.SayExited(3, 143);
  const rendezvous::membership::Verdict verdict = job_.WaitForVerdict();
  EXPECT_EQ(verdict.exit_code, 3);
  EXPECT_EQ(verdict.rank, 3);
  a_.WaitForEndOfJob();
  b_.WaitForEndOfJob();
}

TEST_F(RendezvousGrpcTest, AllFinish_SuccessAndEveryAgentIsStopped) {
  AllAtOnce(Join);
  for (const auto& response : AllAtOnce(Finish)) EXPECT_TRUE(response.ok()) << response.status();
  for (const uint64_t worker : {1, 2}) a_.SayExited(worker, 0);
  for (const uint64_t worker : {3, 4}) b_.SayExited(worker, 0);
  EXPECT_TRUE(job_.WaitForVerdict().success);
  // Answers from before the verdict are sent, even if the server is destroyed at once.
  job_.StopServer();
  a_.WaitForEndOfJob();
  b_.WaitForEndOfJob();
  EXPECT_TRUE(a_.WaitForClose().ok());
}

TEST_F(RendezvousGrpcTest, AgentDies_ItsHostIsLostAndTheJobFails) {
  AllAtOnce(Join);
  auto watch = std::async(std::launch::async, [this] { return Watch(*job_.NewClient(), 1); });
  b_.Die();
  const auto told = watch.get();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_TRUE(absl::StrContains(told->reason(), "host b")) << told->reason();
  for (const uint64_t worker : {1, 2}) a_.SayExited(worker, 143);
  const rendezvous::membership::Verdict verdict = job_.WaitForVerdict();
  EXPECT_FALSE(verdict.success);
  EXPECT_TRUE(absl::StrContains(verdict.summary, "b")) << verdict.summary;
}

TEST_F(RendezvousGrpcTest, ClientGivesUp_LeavesNoWaiter) {
  const auto client = job_.NewClient();
  auto joining = std::async(std::launch::async, [&] { return Join(*client, 1); });
  job_.AskUntilJoining(1);
  client->CancelAll();
  EXPECT_EQ(joining.get().status().code(), absl::StatusCode::kCancelled);
  job_.AskUntilJoining(0);
  for (const auto& response : AllAtOnce(Join)) EXPECT_TRUE(response.ok()) << response.status();
}

TEST_F(RendezvousGrpcTest, DeadlinePasses_LeavesNoWaiter) {
  const auto client = job_.NewClient();
  ASSERT_TRUE(client->GetStatus(absl::InfiniteDuration()).ok());  // connects
  const auto late = client->JoinWorld(JoinOf(1), absl::Milliseconds(100));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  job_.AskUntilJoining(0);
}

TEST_F(RendezvousGrpcTest, RequestsThatAWorkerLeavesParked_AreBounded) {
  AllAtOnce(Join);
  const auto client = job_.NewClient();
  auto large = From<pb::WatchEpochRequest>(1);
  large.set_epoch(1);
  // The server keeps also what it does not know.
  large.GetReflection()->MutableUnknownFields(&large)->AddLengthDelimited(
      100, std::string(1400000, 'x'));
  std::vector<std::future<absl::Status>> parked;
  for (int i = 0; i < 6; ++i) {
    parked.push_back(std::async(std::launch::async, [&] {
      return client->WatchEpoch(large, absl::InfiniteDuration()).status();
    }));
  }
  const auto refusal_of = [&](uint64_t worker) {
    auto wrong = From<pb::WatchEpochRequest>(worker);
    wrong.set_epoch(99);
    return client->WatchEpoch(wrong, absl::InfiniteDuration()).status();
  };
  absl::Status refused = refusal_of(1);
  while (!absl::IsResourceExhausted(refused)) refused = refusal_of(1);  // until all are parked
  EXPECT_TRUE(absl::StrContains(refused.message(), "worker 1 has parked requests")) << refused;
  EXPECT_TRUE(absl::IsFailedPrecondition(refusal_of(2)));
  a_.SayExited(2, 1);
  for (auto& watch : parked) EXPECT_TRUE(watch.get().ok());
}

TEST_F(RendezvousGrpcTest, UnknownWorker_NotFound) {
  EXPECT_EQ(Join(*job_.NewClient(), 99).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RendezvousGrpcTest, RequestStop_EndsParkedCallsWithTheJob) {
  auto joining = std::async(std::launch::async, [&] { return Join(*job_.NewClient(), 1); });
  job_.AskUntilJoining(1);
  job_.server().RequestStop("Ctrl-C", 130, absl::ZeroDuration());
  EXPECT_EQ(joining.get().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RendezvousGrpcTest, GetStatus_ShowsHostsAndWorkers) {
  const auto status = job_.NewClient()->GetStatus(absl::InfiniteDuration());
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->job_id(), "the-job");
  ASSERT_EQ(status->hosts_size(), 2);
  EXPECT_TRUE(status->hosts(0).attached());
  EXPECT_EQ(status->hosts(0).workers_size(), 2);
}

}  // namespace
}  // namespace hvd
