// Many parked calls, and the server's end with calls and streams that are still open.
#include <dirent.h>

#include <memory>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "gtest/gtest.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/transport/connection.h"
#include "tests/integration/rendezvous_job.h"

namespace hvd {
namespace {

constexpr int kWorkers = 200;

int ThreadsOfThisProcess() {
  DIR* const tasks = opendir("/proc/self/task");
  int count = 0;
  while (readdir(tasks) != nullptr) ++count;
  closedir(tasks);
  return count;
}

// One call that waits without a thread.
struct AsyncJoin {
  grpc::ClientContext context;
  pb::JoinWorldRequest request;
  pb::JoinWorldResponse response;
  grpc::Status status;
};

class RendezvousLifetimeTest : public testing::Test {
 protected:
  void SetUp() override { agent_.WaitForStarts(kWorkers); }

  // Has the workers from `first` to `last` join, all over one connection.
  void Join(int first, int last) {
    for (int worker = first; worker <= last; ++worker) {
      joins_.push_back(std::make_unique<AsyncJoin>());
      AsyncJoin* const join = joins_.back().get();
      join->request = From<pb::JoinWorldRequest>(static_cast<uint64_t>(worker));
      join->request.set_address("10.0.0.1");
      join->request.set_port(1);
      stub_->async()->JoinWorld(&join->context, &join->request, &join->response,
                                [this, join](grpc::Status status) {
                                  join->status = std::move(status);
                                  ended_.DecrementCount();
                                });
    }
  }

  RendezvousJob job_{kWorkers};
  PlayedAgent agent_{job_, "a", kWorkers};
  std::unique_ptr<pb::Rendezvous::Stub> stub_ = pb::Rendezvous::NewStub(
      rendezvous::transport::NewChannel(job_.address(), job_.host_credentials()));
  std::vector<std::unique_ptr<AsyncJoin>> joins_;
  absl::BlockingCounter ended_{kWorkers};
};

TEST_F(RendezvousLifetimeTest, ParkedCalls_NeedNoThreads) {
  Join(1, 1);
  job_.AskUntilJoining(1);
  const int before = ThreadsOfThisProcess();
  Join(2, kWorkers - 1);
  job_.AskUntilJoining(kWorkers - 1);
  EXPECT_LT(ThreadsOfThisProcess(), before + 30);
  Join(kWorkers, kWorkers);
  ended_.Wait();
  for (const auto& join : joins_) {
    EXPECT_TRUE(join->status.ok()) << join->status.error_message();
    EXPECT_EQ(join->response.world().members(0).placement().size(), kWorkers);
  }
}

TEST_F(RendezvousLifetimeTest, Destructor_EndsParkedCallsAndStreams) {
  Join(1, kWorkers - 1);
  job_.AskUntilJoining(kWorkers - 1);
  job_.StopServer();
  ended_.DecrementCount();  // for the one that never came
  ended_.Wait();
  for (const auto& join : joins_) {
    EXPECT_EQ(join->status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  EXPECT_EQ(agent_.WaitForClose().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hvd
