// Jobs that outlive their scheduler, in C and with the C++ classes.
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "horovod/rendezvous.h"
#include "horovod/rendezvous.hpp"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd::rendezvous::c_api {
namespace {

using horovod::rendezvous::Error;
using horovod::rendezvous::Job;
using horovod::rendezvous::JobOptions;
using horovod::rendezvous::Result;
using horovod::rendezvous::Server;
using horovod::rendezvous::Worker;

class KeptJobsTest : public testing::Test {
 protected:
  ~KeptJobsTest() override { std::filesystem::remove_all(path_); }

  JobOptions Options() {
    JobOptions options;
    options.id = "j";
    options.np = 1;
    options.max_np = 2;
    options.start_worker = [this](const Worker& worker) { starts_.Put(worker); };
    options.stop_worker = [this](uint64_t worker, double) { stops_.Put(worker); };
    options.finished = [this](const Result& result) { results_.Put(result); };
    return options;
  }

  const std::string path_ = testing::TempDir() + "/c_kept_jobs_" + std::to_string(getpid());
  server::Inbox<Worker> starts_;
  server::Inbox<uint64_t> stops_;
  server::Inbox<Result> results_;
};

TEST_F(KeptJobsTest, LaterServer_GoesOnWithTheJob) {
  std::vector<std::string> addresses;
  std::string credentials;
  uint64_t worker = 0;
  {
    Server server({"127.0.0.1:0"}, path_);
    addresses = server.addresses();
    Job job = server.add_job(Options());
    credentials = job.credentials();
    job.offer_slots({{"here", 1}});
    worker = starts_.Next().worker;
    job.report_started(worker, 4711);
    job.describe();  // what was reported has arrived
  }
  Server server({"127.0.0.1:0"}, path_);
  EXPECT_EQ(server.addresses(), addresses);
  const auto kept = server.kept_jobs();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].id, "j");
  EXPECT_EQ(kept[0].np, 1);
  EXPECT_EQ(kept[0].min_np, 1);
  EXPECT_EQ(kept[0].max_np, 2);
  EXPECT_TRUE(kept[0].starts_workers);
  EXPECT_FALSE(kept[0].has_ended);
  EXPECT_EQ(kept[0].problem, "");
  Job job = server.add_job(Options());
  EXPECT_EQ(job.credentials(), credentials);
  const auto earlier = job.earlier_workers();
  ASSERT_EQ(earlier.size(), 1u);
  EXPECT_EQ(earlier[0].worker, worker);
  EXPECT_EQ(earlier[0].host, "here");
  EXPECT_EQ(earlier[0].pid, 4711);
  EXPECT_THROW(job.start_again(worker + 1), Error);
  job.start_again(worker);
  EXPECT_EQ(starts_.Next().worker, worker);
  EXPECT_TRUE(job.earlier_workers().empty());
  job.request_stop("enough", 3, 1);
  EXPECT_EQ(stops_.Next(), worker);
  horovod::rendezvous::Exit exit;
  exit.worker = worker;
  exit.unknown_end = "nobody saw it";
  job.report_exit(exit);
  EXPECT_EQ(results_.Next().exit_code, 3);
}

TEST_F(KeptJobsTest, ForgottenJob_IsNotThereAnyMore) {
  Server server({"127.0.0.1:0"}, path_);
  std::optional<Job> job = server.add_job(Options());
  EXPECT_THROW(server.forget_job("j"), Error) << "it is on the server";
  job.reset();
  EXPECT_EQ(server.kept_jobs().size(), 1u);
  server.forget_job("j");
  EXPECT_TRUE(server.kept_jobs().empty());
  EXPECT_THROW(server.forget_job("j"), Error);
}

TEST_F(KeptJobsTest, UnknownEnd_OfAnUnfinishedWorker_IsAFailure) {
  Server server({"127.0.0.1:0"}, path_);
  JobOptions options = Options();
  options.max_np = 0;
  Job job = server.add_job(options);
  job.offer_slots({{"here", 1}});
  horovod::rendezvous::Exit exit;
  exit.worker = starts_.Next().worker;
  exit.unknown_end = "ended while no scheduler was there";
  job.report_exit(exit);
  const Result result = results_.Next();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.exit_meaning, "ended while no scheduler was there");
}

TEST_F(KeptJobsTest, NoFolder_IsRefused) {
  const char* listen[] = {"127.0.0.1:0"};
  hvd_rendezvous_server* server = nullptr;
  EXPECT_EQ(
      hvd_rendezvous_start_with_state(HVD_RENDEZVOUS_ABI_VERSION, listen, 1, nullptr, &server),
      HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_rendezvous_start_with_state(HVD_RENDEZVOUS_ABI_VERSION, listen, 1,
                                            "/proc/there/can/be/none", &server),
            HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(hvd_rendezvous_last_error(), "/proc/there"))
      << hvd_rendezvous_last_error();
  EXPECT_EQ(hvd_rendezvous_start_with_state(99, listen, 1, path_.c_str(), &server),
            HVD_RENDEZVOUS_UNIMPLEMENTED);
}

// A program that was built before the structures had grown.
TEST_F(KeptJobsTest, OlderProgram_GetsTheDefaults) {
  const char* listen[] = {"127.0.0.1:0"};
  hvd_rendezvous_server* server = nullptr;
  ASSERT_EQ(hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, listen, 1, &server), 0);
  hvd_rendezvous_job_options options;
  const size_t size = offsetof(hvd_rendezvous_job_options, reattach_timeout);
  hvd_rendezvous_job_options_init(&options, size);
  hvd_rendezvous_job* job = nullptr;
  EXPECT_EQ(hvd_rendezvous_add_job(server, &options, &job), 0) << hvd_rendezvous_last_error();
  hvd_rendezvous_exit exit = {};
  exit.size = offsetof(hvd_rendezvous_exit, unknown_end);
  exit.worker = 7;
  EXPECT_EQ(hvd_rendezvous_report_exit(job, &exit), 0) << hvd_rendezvous_last_error();
  EXPECT_EQ(hvd_rendezvous_remove_job(job), 0);
  EXPECT_EQ(hvd_rendezvous_stop(server), 0);
}

}  // namespace
}  // namespace hvd::rendezvous::c_api
