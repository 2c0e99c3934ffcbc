// Tests of the restarter against a scripted daemon, whose watch never says anything: what the
// restarter learns by itself decides.
#include "agent/restarter/restarter.h"

#include <unistd.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rendezvous/client/rendezvous_client.h"

// For ThreadSanitizer: the restarter's thread never ends, because the process ends before it.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_options() { return "report_thread_leaks=0"; }

namespace hvd::agent::restarter {
namespace {

constexpr uint64_t kWorker = 11;
constexpr uint64_t kIncarnation = 99;

// The daemon's answers.
struct Script {
  std::deque<pb::JoinWorldResponse> joins;
  absl::Status progress;  // to the question whether the world is whole
};

class ScriptedClient : public rendezvous::client::RendezvousClient {
 public:
  explicit ScriptedClient(Script& script) : script_(script) {}

  absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest&,
                                                  absl::Duration) override {
    if (script_.joins.empty()) return absl::FailedPreconditionError("no further world");
    pb::JoinWorldResponse response = std::move(script_.joins.front());
    script_.joins.pop_front();
    return response;
  }
  absl::StatusOr<pb::GetMembersResponse> GetMembers(const pb::GetMembersRequest&,
                                                    absl::Duration) override {
    return absl::UnimplementedError("the worlds are small");
  }
  absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest&,
                                                    absl::Duration) override {
    cancelled_.WaitForNotification();
    return absl::CancelledError("cancelled");
  }
  absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest& request,
                                                absl::Duration) override {
    pb::ExchangeResponse response;
    response.add_values(request.value());
    return response;
  }
  absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest& request,
                                            absl::Duration) override {
    if (request.has_progress() && !script_.progress.ok()) return script_.progress;
    return pb::ReportResponse();
  }
  absl::StatusOr<pb::ReportStallResponse> ReportStall(const pb::ReportStallRequest&,
                                                      absl::Duration) override {
    return pb::ReportStallResponse();
  }
  absl::StatusOr<pb::GetStatusResponse> GetStatus(absl::Duration) override {
    return pb::GetStatusResponse();
  }
  void CancelAll() override { cancelled_.Notify(); }

 private:
  Script& script_;
  absl::Notification cancelled_;
};

// A world of two, in which this worker has the rank.
pb::JoinWorldResponse World(uint64_t epoch, int own_rank) {
  pb::JoinWorldResponse response;
  pb::World& world = *response.mutable_world();
  world.set_epoch(epoch);
  world.set_homogeneous(true);
  for (const int rank : {0, 1}) {
    pb::Member& member = *world.add_members();
    member.mutable_worker()->set_worker_id(rank == own_rank ? kWorker : kWorker + 1);
    member.mutable_worker()->set_incarnation(rank == own_rank ? kIncarnation : kIncarnation + 1);
    member.set_address("127.0.0.1");
    member.set_port(1000 + rank);
    member.mutable_placement()->set_rank(rank);
    member.mutable_placement()->set_size(2);
    member.mutable_placement()->set_local_rank(rank);
    member.mutable_placement()->set_local_size(2);
    member.mutable_placement()->set_cross_size(1);
  }
  return response;
}

// Runs a restarter of this shell command, and ends this process with its exit status; with 100 if
// it has not told the agent these ranks.
[[noreturn]] void RunAndExit(Script script, const std::string& command,
                             const std::vector<int>& ranks) {
  const std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  worker_runtime::session::Session session(
      {WorkerId(kWorker), "127.0.0.1", /*elastic=*/true, absl::ZeroDuration()},
      Incarnation(kIncarnation), [&script] { return std::make_unique<ScriptedClient>(script); });
  std::vector<int> told;
  Restarter restarter(*loop, session, "job", {"/bin/sh", {"sh", "-c", command}}, [&told](int rank) {
    told.push_back(rank);
    return absl::OkStatus();
  });
  const os::ExitStatus end = restarter.Run();
  _exit(told == ranks ? end.exit_code : 100);
}

constexpr char kFailsOnce[] = "exit $((TORCHELASTIC_RESTART_COUNT == 0 ? 3 : 0))";

TEST(RestarterDeathTest, CommandFails_EndsInTheSameWay) {
  EXPECT_EXIT(RunAndExit({{World(1, 1)}, absl::OkStatus()}, kFailsOnce, {1}),
              testing::ExitedWithCode(3), "");
}

TEST(RestarterDeathTest, CommandFailsInABrokenWorld_StartsAgainInTheNext) {
  const Script script{{World(1, 1), World(2, 0)}, absl::FailedPreconditionError("it is broken")};
  EXPECT_EXIT(RunAndExit(script, kFailsOnce, {1, 0}), testing::ExitedWithCode(0), "");
}

TEST(RestarterDeathTest, CommandGetsTheRankOfEachWorld) {
  const Script script{{World(1, 1), World(2, 0)}, absl::FailedPreconditionError("it is broken")};
  EXPECT_EXIT(RunAndExit(script, "[ $RANK = 0 ] || exit 3; exit 0", {1, 0}),
              testing::ExitedWithCode(0), "");
}

TEST(RestarterDeathTest, NoFurtherWorld_Ends) {
  EXPECT_EXIT(RunAndExit({{}, absl::OkStatus()}, kFailsOnce, {}), testing::ExitedWithCode(1),
              "no further world");
}

}  // namespace
}  // namespace hvd::agent::restarter
