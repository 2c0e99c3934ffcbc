#include "rendezvous/server/status_pages.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::server {
namespace {

class FakeServer : public Server {
 public:
  std::vector<std::string> addresses() const override { return {}; }
  void RequestStop(std::string, int, absl::Duration) override {}
  void Interrupt(std::string, int, absl::Duration) override {}
  void SignalWorkers(int) override {}
  bool Harm(const std::string&, const pb::Fault&) override { return false; }
  void ReportHosts(std::vector<membership::HostSlots>) override {}
  void EndAtCommit(std::string, int, absl::Duration) override {}
  void Drain(std::string, absl::Duration, std::string) override {}
  membership::Membership::View Describe() override { return view; }
  absl::Duration BusyFor() override { return busy; }
  std::string Metrics() override { return "figures\n"; }

  membership::Membership::View view;
  absl::Duration busy;
};

TEST(AnswerStandbyPage, IsHealthyAndNotReady) {
  EXPECT_EQ(AnswerStandbyPage("/healthz").code, 200);
  EXPECT_EQ(AnswerStandbyPage("/readyz").code, 503);
  EXPECT_EQ(AnswerStandbyPage("/metrics").code, 503);
  EXPECT_EQ(AnswerStandbyPage("/").code, 404);
}

TEST(AnswerStatusPage, Readyz_SaysStateAndWhetherItIsOver) {
  FakeServer server;
  server.view.state = lifecycle::JobState::kRunning;
  server.view.explanation = "2 ranks run";
  EXPECT_EQ(AnswerStatusPage("/readyz", server).code, 200);
  EXPECT_EQ(AnswerStatusPage("/readyz", server).body, "running: 2 ranks run\n");
  server.view.state = lifecycle::JobState::kFailed;
  EXPECT_EQ(AnswerStatusPage("/readyz", server).code, 503);
}

TEST(AnswerStatusPage, TheJobHangs_NobodyAsksIt_AndInTimeItIsIll) {
  FakeServer server;
  server.busy = kAnswerPatience;
  EXPECT_EQ(AnswerStatusPage("/readyz", server).code, 503);
  EXPECT_EQ(AnswerStatusPage("/metrics", server).code, 503);
  EXPECT_EQ(AnswerStatusPage("/healthz", server).code, 200);
  server.busy = kHealthPatience;
  EXPECT_EQ(AnswerStatusPage("/healthz", server).code, 503);
  EXPECT_EQ(AnswerStatusPage("/healthz", server).body,
            "nothing has been decided for 10s: does the disk of --state-dir hang?\n");
}

TEST(AnswerStatusPage, OtherPages) {
  FakeServer server;
  EXPECT_EQ(AnswerStatusPage("/metrics", server).body, "figures\n");
  EXPECT_EQ(AnswerStatusPage("/healthz", server).body, "ok\n");
  EXPECT_EQ(AnswerStatusPage("/", server).code, 404);
}

}  // namespace
}  // namespace hvd::rendezvous::server
