#include "launcher/report/status_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::report {
namespace {

using ::testing::HasSubstr;

TEST(StatusJson, ElasticJob_HasAllFields) {
  pb::GetStatusResponse status;
  status.set_job_id("4711");
  status.set_command("python \"my train.py\"");
  status.set_elastic(true);
  status.set_state("resetting");
  status.set_explanation("waiting");
  status.set_wait_left_ms(61'500);
  status.set_epoch(7);
  status.set_worlds(4);
  status.set_size(3);
  status.set_min_workers(2);
  status.set_max_workers(8);
  status.set_failures(1);
  status.set_failures_left(19);
  status.set_checkpoint_commit(38);
  status.set_commit(40);
  status.set_commit_age_ms(2500);
  status.set_commit_rate(1.5);
  status.set_checkpoint("newest");
  status.set_lost_steps(12);
  status.set_lost_ms(7000);
  status.set_daemon_pid(99);
  status.set_daemon_host("n1");
  pb::HostStatus* host = status.add_hosts();
  host->set_host("a");
  host->set_slots(2);
  host->set_machine("m");
  host->set_attached(true);
  host->set_condition("draining");
  for (int id = 12; id <= 13; ++id) {
    pb::WorkerStatus* worker = host->add_workers();
    worker->set_worker_id(id);
    worker->set_rank(id - 12);
    worker->set_pid(31337 + id);
    worker->set_state("running");
  }
  pb::Happening* happening = status.add_recent();
  happening->set_kind("host_lost");
  happening->set_text("host b was lost");
  happening->set_age_ms(500);
  EXPECT_EQ(
      StatusJson(status),
      R"({"job":"4711","command":"python \"my train.py\"","elastic":true,"state":"resetting",)"
      R"("explanation":"waiting","wait_seconds_left":61.5,"world":7,"worlds":4,"size":3,)"
      R"("min_np":2,"max_np":8,"failures":1,"failures_left":19,"commit":40,)"
      R"("commit_age_seconds":2.5,"commits_per_second":1.5,"checkpoint_commit":38,"checkpoint":"newest","lost_steps":12,"lost_seconds":7,)"
      R"("daemon":{"pid":99,"host":"n1"},"hosts":[{"host":"a","slots":2,"machine":"m",)"
      R"("attached":true,"condition":"draining","workers":[{"worker":12,"rank":0,"pid":31349,)"
      R"("state":"running"},{"worker":13,"rank":1,"pid":31350,"state":"running"}]}],)"
      R"("recent":[{"kind":"host_lost","age_seconds":0.5,"text":"host b was lost"}]})");
}

TEST(StatusJson, UnknownValues_AreNull) {
  const std::string json = StatusJson({});
  for (const char* field :
       {"wait_seconds_left", "failures_left", "commit_age_seconds", "commits_per_second"}) {
    EXPECT_THAT(json, HasSubstr(std::string("\"") + field + "\":null"));
  }
}

}  // namespace
}  // namespace hvd::launcher::report
