#include "launcher/report/status_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::report {
namespace {

using ::testing::HasSubstr;

pb::GetStatusResponse Running() {
  pb::GetStatusResponse status;
  status.set_job_id("4711");
  status.set_epoch(7);
  status.set_state("running");
  status.set_explanation("3 workers train");
  status.set_min_workers(2);
  status.set_max_workers(8);
  status.set_size(3);
  status.set_worlds(4);
  status.set_failures(1);
  status.set_failures_left(19);
  pb::HostStatus* host = status.add_hosts();
  host->set_host("a-long-name");
  host->set_slots(2);
  host->set_attached(true);
  pb::WorkerStatus* worker = host->add_workers();
  worker->set_worker_id(12);
  worker->set_rank(0);
  worker->set_pid(31337);
  worker->set_state("running");
  worker = host->add_workers();
  worker->set_worker_id(13);
  worker->set_rank(-1);
  worker->set_state("starting");
  host = status.add_hosts();
  host->set_host("b");
  host->set_slots(16);
  return status;
}

TEST(StatusTable, WaitingJob_SaysForHowLong) {
  pb::GetStatusResponse status = Running();
  status.set_explanation("waiting for hosts");
  status.set_wait_left_ms(61'500);
  EXPECT_THAT(StatusTable(status), HasSubstr("\nwaiting for hosts; for up to 1m1s more\n"));
}

TEST(StatusTable, HostsOfOneMachine_AreShown) {
  pb::GetStatusResponse status = Running();
  status.mutable_hosts(0)->set_machine("m");
  status.mutable_hosts(1)->set_machine("m");
  EXPECT_THAT(StatusTable(status), HasSubstr("not attached, same machine as a-long-name\n"));
  status.mutable_hosts(1)->set_machine("n");
  EXPECT_THAT(StatusTable(status), HasSubstr("not attached\n"));
}

TEST(StatusTable, RunningJob_ListsHostsAndWorkers) {
  EXPECT_EQ(StatusTable(Running()),
            "job 4711: running, world 7, 3 workers (at least 2, at most 8), 4 worlds, "
            "1 failure (19 left)\n"
            "3 workers train\n"
            "\n"
            "HOST         SLOTS  RANK  WORKER  PID    STATE\n"
            "a-long-name  2\n"
            "                    0     12      31337  running\n"
            "                    -     13      -      starting\n"
            "b            16                          not attached\n");
}

TEST(StatusTable, ConditionsLimitsAndHappenings_AreShown) {
  pb::GetStatusResponse status = Running();
  status.mutable_hosts(0)->set_condition("draining");
  status.set_max_workers(1 << 20);
  pb::Happening* happening = status.add_recent();
  happening->set_text("host b was lost");
  happening->set_age_ms(61500);
  const std::string table = StatusTable(status);
  EXPECT_THAT(table, HasSubstr("a-long-name  2                           draining\n"));
  EXPECT_THAT(table, HasSubstr("3 workers (at least 2),"));
  EXPECT_THAT(table, HasSubstr("\n1m1s ago  host b was lost\n"));
  status.set_max_workers(2);
  EXPECT_THAT(StatusTable(status), HasSubstr(", 3 workers, "));
}

TEST(StatusTable, StaticJob_ForgivesNothing) {
  pb::GetStatusResponse status = Running();
  status.set_min_workers(3);
  status.set_max_workers(3);
  status.set_failures_left(0);
  EXPECT_THAT(StatusTable(status), HasSubstr(", 1 failure\n"));
}

TEST(StatusTable, AgeOfTheWorld_IsThatOfTheNewest) {
  pb::GetStatusResponse status = Running();
  for (const int seconds : {300, 42, 7}) {
    pb::Happening* happening = status.add_recent();
    happening->set_kind(seconds == 7 ? "worker_failed" : "world_formed");
    happening->set_age_ms(seconds * 1000);
  }
  EXPECT_THAT(StatusTable(status), HasSubstr(", world 7 (formed 42s ago), 3 workers"));
}

}  // namespace
}  // namespace hvd::launcher::report
