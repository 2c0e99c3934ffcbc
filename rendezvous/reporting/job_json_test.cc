#include "rendezvous/reporting/job_json.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::reporting {
namespace {

TEST(JobJsonTest, AllOfAJob) {
  membership::Membership::View view;
  view.epoch = Epoch(3);
  view.state = lifecycle::JobState::kRunning;
  view.explanation = "all \"well\"";
  view.min_workers = 1;
  view.max_workers = 4;
  view.size = 1;
  view.failures = 2;
  view.failures_left = 18;
  view.elastic = true;
  view.commit = 7;
  view.checkpoint = 6;
  view.checkpoint_place = "/c";
  view.lost_steps = 1;
  view.lost_time = absl::Milliseconds(1500);
  membership::Membership::HostView host;
  host.host = {"a", 2, "m"};
  host.attached = true;
  host.condition = "draining";
  host.workers.push_back({WorkerId(9), 0, 123, lifecycle::WorkerState::kRunning});
  host.workers.push_back({WorkerId(10), -1, 0, lifecycle::WorkerState::kStarting});
  view.hosts.push_back(host);
  EXPECT_EQ(
      JobJson("j", view),
      R"({"job":"j","state":"running","world":3,"size":1,"min_np":1,"max_np":4,)"
      R"("explanation":"all \"well\"","failures":2,"failures_left":18,"commit":7,"checkpoint_commit":6,)"
      R"("checkpoint":"newest checkpoint: commit 6, /c",)"
      R"("lost_steps":1,"lost_seconds":1.5,"hosts":[{"host":"a","slots":2,"machine":"m","attached":true,)"
      R"("condition":"draining","workers":[{"worker":9,"rank":0,"pid":123,"state":"running"},)"
      R"({"worker":10,"rank":-1,"pid":0,"state":"starting"}]}]})");
}

TEST(JobJsonTest, WithoutHosts_AnEmptyList) {
  EXPECT_NE(JobJson("j", {}).find(R"("hosts":[]})"), std::string::npos);
}

}  // namespace
}  // namespace hvd::rendezvous::reporting
