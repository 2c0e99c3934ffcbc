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
  status.set_elastic(true);
  status.set_command("python train.py");
  status.set_daemon_pid(4712);
  status.set_daemon_host("n1");
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
  EXPECT_THAT(StatusTable(status),
              HasSubstr("\nwaiting for hosts; this wait ends in 1m1s at the latest\n"));
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
            "job 4711: running, world 7, 3 ranks (at least 2, at most 8)\n"
            "3 workers train\n"
            "4 worlds so far, 1 failure (19 more are forgiven)\n"
            "command: python train.py\n"
            "daemon: pid 4712 on n1\n"
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
  EXPECT_THAT(table, HasSubstr("3 ranks (at least 2)\n"));
  EXPECT_THAT(table, HasSubstr("\n1m1s ago  host b was lost\n"));
}

TEST(StatusTable, LostHost_IsListedOnce) {
  pb::GetStatusResponse status = Running();
  for (const char* kind : {"host_lost", "world_broken"}) {
    pb::Happening* happening = status.add_recent();
    happening->set_kind(kind);
    happening->set_text("host b was lost: cut off");
  }
  EXPECT_THAT(StatusTable(status), ::testing::EndsWith("\n\n0s ago  host b was lost: cut off\n"));
}

TEST(StatusTable, StaticJob_ForgivesNothing) {
  pb::GetStatusResponse status = Running();
  status.set_elastic(false);
  EXPECT_THAT(StatusTable(status), HasSubstr(": running, world 7, 3 ranks\n"));
  EXPECT_THAT(StatusTable(status), HasSubstr(", 1 failure\n"));
}

TEST(StatusTable, BeforeTheFirstWorld_NoWorldIsNamed) {
  pb::GetStatusResponse status;
  status.set_job_id("4711");
  status.set_state("forming");
  status.set_explanation("waiting");
  EXPECT_THAT(StatusTable(status),
              ::testing::StartsWith("job 4711: forming, no world yet\nwaiting\n\nHOST"));
}

TEST(StatusTable, ProgressAndLosses_AreTotals) {
  pb::GetStatusResponse status = Running();
  status.set_commit(40);
  EXPECT_THAT(StatusTable(status), HasSubstr("forgiven), commit 40\n"));
  status.set_commit_age_ms(3000);
  status.set_commit_rate(2.5);
  status.set_lost_ms(7000);
  EXPECT_THAT(StatusTable(status),
              HasSubstr(", commit 40 (3s ago, 2.5 per second), 7s of work lost\n"));
  status.set_lost_steps(12);
  EXPECT_THAT(StatusTable(status), HasSubstr(", 12 steps and 7s of work lost\n"));
}

TEST(StatusTable, AgeOfTheWorld_IsThatOfTheNewest) {
  pb::GetStatusResponse status = Running();
  for (const int seconds : {300, 42, 7}) {
    pb::Happening* happening = status.add_recent();
    happening->set_kind(seconds == 7 ? "worker_failed" : "world_formed");
    happening->set_age_ms(seconds * 1000);
  }
  EXPECT_THAT(StatusTable(status),
              HasSubstr(", world 7, 3 ranks (at least 2, at most 8), formed 42s ago\n"));
}

TEST(StatusTable, ControlCharacters_AreEscapedInEveryText) {
  pb::GetStatusResponse status = Running();
  for (std::string* text :
       {status.mutable_command(), status.mutable_daemon_host(), status.mutable_state(),
        status.mutable_explanation(), status.mutable_checkpoint(), status.mutable_job_id()}) {
    *text = "\x1b[2J";
  }
  status.mutable_hosts(0)->set_host("\x1b[3J\n");
  status.mutable_hosts(0)->set_condition("\x1b[4J");
  status.mutable_hosts(0)->mutable_workers(0)->set_state("\x1b[5J");
  status.add_recent()->set_text("\x1b[6J\nline");
  const std::string table = StatusTable(status);
  EXPECT_EQ(table.find('\x1b'), std::string::npos) << table;
  EXPECT_THAT(table, HasSubstr(R"(\x1b[6J\nline)"));
  EXPECT_THAT(table, HasSubstr(R"(\x1b[3J\n)"));
}

}  // namespace
}  // namespace hvd::launcher::report
