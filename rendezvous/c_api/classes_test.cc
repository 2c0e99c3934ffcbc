// horovod/rendezvous.hpp: ownership, and errors as exceptions.
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "horovod/rendezvous.hpp"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd::rendezvous::c_api {
namespace {

using horovod::rendezvous::Error;
using horovod::rendezvous::Exit;
using horovod::rendezvous::Job;
using horovod::rendezvous::JobOptions;
using horovod::rendezvous::Result;
using horovod::rendezvous::Server;
using horovod::rendezvous::Worker;

JobOptions NoWorkers() {
  JobOptions options;
  options.start_worker = [](const Worker&) {};
  options.stop_worker = [](uint64_t, double) {};
  return options;
}

TEST(ClassesTest, AJobToItsEnd) {
  server::Inbox<Worker> starts;
  server::Inbox<std::string> free_hosts;
  server::Inbox<Result> results;
  Server server({"127.0.0.1:0", "[::1]:0"});
  EXPECT_EQ(server.addresses().size(), 2);
  JobOptions options = NoWorkers();
  options.id = "j";
  options.start_worker = [&](const Worker& worker) { starts.Put(worker); };
  options.host_free = [&](const std::string& host) { free_hosts.Put(host); };
  options.finished = [&](const Result& result) { results.Put(result); };
  Job job = server.add_job(std::move(options));
  EXPECT_EQ(job.id(), "j");
  job.offer_slots({{"here", 1}});
  const Worker worker = starts.Next();
  EXPECT_EQ(worker.host, "here");
  EXPECT_FALSE(worker.environment.empty());
  job.report_started(worker.worker, 77);
  EXPECT_NE(job.describe().find("\"pid\":77"), std::string::npos);
  Exit exit;
  exit.worker = worker.worker;
  exit.exit_code = 4;
  job.report_exit(exit);
  const Result result = results.Next();
  EXPECT_FALSE(result.success);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.exit_meaning, "exit code 4");
  EXPECT_EQ(free_hosts.Next(), "here");
}

TEST(ClassesTest, NoticesOfAnElasticJob) {
  server::Inbox<std::string> notices;
  Server server({"127.0.0.1:0"});
  JobOptions options = NoWorkers();
  options.max_np = 2;
  options.notice = [&](const std::string& json) { notices.Put(json); };
  Job job = server.add_job(std::move(options));
  job.offer_slots({{"here", 1}});
  EXPECT_NE(notices.Next().find("host_joined"), std::string::npos);
}

TEST(ClassesTest, ErrorsAreExceptions_AndLeaveNothing) {
  EXPECT_THROW(Server({"nonsense"}), Error);
  Server server({"127.0.0.1:0"});
  JobOptions options = NoWorkers();
  options.np = 0;
  try {
    server.add_job(options);
    FAIL() << "np 0 is no job";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), HVD_RENDEZVOUS_INVALID_ARGUMENT);
    EXPECT_STREQ(error.what(), "np is 0, and must be from 1 to 1048576");
  }
}

TEST(ClassesTest, ServerLivesAsLongAsItsJobs) {
  std::optional<Server> server(std::in_place, std::vector<std::string>{"127.0.0.1:0"});
  Job one = server->add_job(NoWorkers());
  Job two = server->add_job(NoWorkers());
  server.reset();
  one = std::move(two);
  Job moved = std::move(one);
  EXPECT_NE(moved.metrics().find("horovod_world"), std::string::npos);
}

TEST(ClassesDeathTest, JobDestroyedByItsOwnCallback_Aborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        server::Inbox<int> never;
        std::optional<Job> job;
        Server server({"127.0.0.1:0"});
        JobOptions options = NoWorkers();
        options.finished = [&](const Result&) { job.reset(); };
        job = server.add_job(std::move(options));
        job->request_stop("enough", 1, 0);
        never.Next();
      },
      "to remove a job in a callback would wait for itself");
}

}  // namespace
}  // namespace hvd::rendezvous::c_api
