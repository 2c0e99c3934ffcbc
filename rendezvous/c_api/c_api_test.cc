// The functions of horovod/rendezvous.h, as a C program would call them.
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "horovod/rendezvous.h"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd::rendezvous::c_api {
namespace {

struct Start {
  uint64_t worker;
  std::string host;
  std::vector<std::string> environment;
  bool takes_signals;
};

// Records the callbacks of a job, and tries the calls that are not allowed in them.
struct Scheduler {
  server::Inbox<Start> starts;
  server::Inbox<uint64_t> stops;
  server::Inbox<std::string> free_hosts;
  server::Inbox<std::string> results;
  server::Inbox<std::string> notices;
  server::Inbox<std::string> refusals;
  hvd_rendezvous_server* server = nullptr;
  hvd_rendezvous_job* job = nullptr;

  static void OnStart(void* context, const hvd_rendezvous_worker* worker) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    Start start = {worker->worker, worker->host, {}, sigismember(&mask, SIGTERM) == 0};
    for (const char* const* v = worker->environment; *v != nullptr; ++v) {
      start.environment.push_back(*v);
    }
    static_cast<Scheduler*>(context)->starts.Put(start);
  }
  static void OnStop(void* context, uint64_t worker, double) {
    static_cast<Scheduler*>(context)->stops.Put(worker);
  }
  static void OnFree(void* context, const char* host) {
    static_cast<Scheduler*>(context)->free_hosts.Put(host);
  }
  static void OnFinished(void* context, const hvd_rendezvous_result* result) {
    auto* const self = static_cast<Scheduler*>(context);
    for (const int32_t code :
         {hvd_rendezvous_remove_job(self->job), hvd_rendezvous_stop(self->server)}) {
      EXPECT_EQ(code, HVD_RENDEZVOUS_FAILED_PRECONDITION);
      self->refusals.Put(hvd_rendezvous_last_error());
    }
    self->results.Put(std::to_string(result->exit_code) + " " + result->summary);
  }
  static void OnNotice(void* context, const char* json) {
    static_cast<Scheduler*>(context)->notices.Put(json);
  }

  hvd_rendezvous_job_options Options(int np) {
    hvd_rendezvous_job_options options;
    hvd_rendezvous_job_options_init(&options, sizeof(options));
    options.np = np;
    options.context = this;
    options.start_worker = OnStart;
    options.stop_worker = OnStop;
    options.host_free = OnFree;
    options.finished = OnFinished;
    options.notice = OnNotice;
    return options;
  }
};

class CApiTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* listen[] = {"127.0.0.1:0"};
    ASSERT_EQ(hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, listen, 1, &server_), 0)
        << hvd_rendezvous_last_error();
    scheduler_.server = server_;
  }
  void TearDown() override { EXPECT_EQ(hvd_rendezvous_stop(server_), 0); }

  void Add(const hvd_rendezvous_job_options& options) {
    ASSERT_EQ(hvd_rendezvous_add_job(server_, &options, &scheduler_.job), 0)
        << hvd_rendezvous_last_error();
  }

  void Offer(const char* host, int slots) {
    const hvd_rendezvous_host hosts[] = {{host, slots, nullptr}};
    ASSERT_EQ(hvd_rendezvous_offer_slots(scheduler_.job, hosts, 1), 0);
  }

  template <typename Function, typename Handle>
  static std::string Text(Function function, Handle* handle) {
    char* text = nullptr;
    EXPECT_EQ(function(handle, &text), 0) << hvd_rendezvous_last_error();
    std::string made = text == nullptr ? "" : text;
    hvd_rendezvous_free(text);
    return made;
  }

  Scheduler scheduler_;
  hvd_rendezvous_server* server_ = nullptr;
};

TEST(CApiStartTest, OtherAbiVersion_IsOneClearError) {
  const char* listen[] = {"127.0.0.1:0"};
  hvd_rendezvous_server* server = nullptr;
  EXPECT_EQ(hvd_rendezvous_start(99, listen, 1, &server), HVD_RENDEZVOUS_UNIMPLEMENTED);
  EXPECT_TRUE(absl::StartsWith(
      hvd_rendezvous_last_error(),
      "the program was built for version 99 of the ABI of libhvd_rendezvous.so, and this library"))
      << hvd_rendezvous_last_error();
  EXPECT_EQ(server, nullptr);
}

TEST(CApiStartTest, BadAddresses_AreRefused) {
  hvd_rendezvous_server* server = nullptr;
  const char* listen[] = {"nonsense"};
  EXPECT_EQ(hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, listen, 1, &server),
            HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(hvd_rendezvous_last_error(), "nonsense"))
      << hvd_rendezvous_last_error();
  EXPECT_EQ(hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, nullptr, 0, &server),
            HVD_RENDEZVOUS_INVALID_ARGUMENT);
}

TEST_F(CApiTest, Address_HasARealPort) {
  EXPECT_TRUE(absl::StartsWith(hvd_rendezvous_address(server_, 0), "127.0.0.1:"));
  EXPECT_FALSE(absl::EndsWith(hvd_rendezvous_address(server_, 0), ":0"));
  EXPECT_EQ(hvd_rendezvous_address(server_, 1), nullptr);
  EXPECT_EQ(hvd_rendezvous_address(server_, -1), nullptr);
}

TEST_F(CApiTest, OfferedSlots_StartWorkers_WhoseExitEndsTheJob) {
  Add(scheduler_.Options(2));
  Offer("here", 2);
  const Start start = scheduler_.starts.Next();
  EXPECT_EQ(start.host, "here");
  EXPECT_FALSE(start.takes_signals) << "the library's threads take none";
  bool has_socket = false;
  for (const std::string& v : start.environment) {
    has_socket |= absl::StartsWith(v, "HOROVOD_AGENT_SOCKET=");
  }
  EXPECT_TRUE(has_socket);
  const Start other = scheduler_.starts.Next();
  EXPECT_EQ(hvd_rendezvous_report_started(scheduler_.job, start.worker, 1234), 0);
  EXPECT_TRUE(absl::StrContains(Text(hvd_rendezvous_describe, scheduler_.job), "\"pid\":1234"));

  hvd_rendezvous_exit exit = {};
  exit.size = sizeof(exit);
  exit.worker = start.worker;
  exit.exit_code = 3;
  exit.last_output = "first\nboom";
  EXPECT_EQ(hvd_rendezvous_report_exit(scheduler_.job, &exit), 0);
  EXPECT_EQ(scheduler_.stops.Next(), other.worker);
  exit.worker = other.worker;
  exit.exit_code = 0;
  exit.signal = SIGTERM;
  EXPECT_EQ(hvd_rendezvous_report_exit(scheduler_.job, &exit), 0);
  EXPECT_TRUE(absl::StartsWith(scheduler_.results.Next(), "3 "));
  EXPECT_TRUE(absl::StrContains(scheduler_.refusals.Next(), "in a callback"));
  EXPECT_EQ(scheduler_.free_hosts.Next(), "here");
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

TEST_F(CApiTest, ElasticJob_SaysWhatHappens_AndGivesWithdrawnHostsBack) {
  hvd_rendezvous_job_options options = scheduler_.Options(1);
  options.max_np = 2;
  options.drain_grace = 0;
  Add(options);
  Offer("here", 1);
  EXPECT_TRUE(absl::StrContains(scheduler_.notices.Next(), "\"kind\":\"host_joined\""));
  const Start start = scheduler_.starts.Next();
  ASSERT_EQ(hvd_rendezvous_offer_slots(scheduler_.job, nullptr, 0), 0);
  EXPECT_EQ(scheduler_.stops.Next(), start.worker);
  hvd_rendezvous_exit exit = {};
  exit.size = sizeof(exit);
  exit.worker = start.worker;
  EXPECT_EQ(hvd_rendezvous_report_exit(scheduler_.job, &exit), 0);
  EXPECT_EQ(scheduler_.free_hosts.Next(), "here");
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

TEST_F(CApiTest, LimitsOfAnElasticJob_ChangeWhileItRuns) {
  hvd_rendezvous_job_options options = scheduler_.Options(1);
  Add(options);
  EXPECT_EQ(hvd_rendezvous_set_limits(scheduler_.job, 1, 2), HVD_RENDEZVOUS_FAILED_PRECONDITION);
  EXPECT_STREQ(hvd_rendezvous_last_error(),
               "the size of a job that is not elastic can't be changed");
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
  options.max_np = 1;
  Add(options);
  Offer("here", 3);
  scheduler_.starts.Next();
  EXPECT_EQ(hvd_rendezvous_set_limits(scheduler_.job, 3, 2), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_STREQ(hvd_rendezvous_last_error(), "max_np is 2, and must be from 3 to 1048576");
  EXPECT_EQ(hvd_rendezvous_set_limits(scheduler_.job, 1, 0), 0);
  scheduler_.starts.Next();
  scheduler_.starts.Next();
  EXPECT_TRUE(absl::StrContains(Text(hvd_rendezvous_describe, scheduler_.job),
                                "\"min_np\":1,\"max_np\":1048576"));
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

TEST_F(CApiTest, ServerWithJobs_IsNotStopped) {
  Add(scheduler_.Options(1));
  EXPECT_EQ(hvd_rendezvous_stop(server_), HVD_RENDEZVOUS_FAILED_PRECONDITION);
  EXPECT_STREQ(hvd_rendezvous_last_error(), "the server has 1 jobs; remove them first");
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

TEST_F(CApiTest, TwoJobsOfOneId_AreRefused) {
  hvd_rendezvous_job_options options = scheduler_.Options(1);
  options.id = "one";
  Add(options);
  EXPECT_STREQ(hvd_rendezvous_job_id(scheduler_.job), "one");
  hvd_rendezvous_job* second = nullptr;
  EXPECT_EQ(hvd_rendezvous_add_job(server_, &options, &second), HVD_RENDEZVOUS_ALREADY_EXISTS);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

TEST_F(CApiTest, JobOfAgents_HasCredentials_AndTakesOffers) {
  hvd_rendezvous_job_options options = scheduler_.Options(1);
  options.start_worker = nullptr;
  hvd_rendezvous_job* none = nullptr;
  EXPECT_EQ(hvd_rendezvous_add_job(server_, &options, &none), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_STREQ(hvd_rendezvous_last_error(), "start_worker and stop_worker: set both, or neither");
  options.stop_worker = nullptr;
  Add(options);
  const std::string credentials = Text(hvd_rendezvous_credentials, scheduler_.job);
  EXPECT_TRUE(absl::StartsWith(credentials, "token: \"")) << credentials;
  const hvd_rendezvous_host hosts[] = {{"a", 1, nullptr}};
  EXPECT_EQ(hvd_rendezvous_offer_slots(scheduler_.job, hosts, 1), 0);
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

TEST_F(CApiTest, BadArguments_AreNamed_AndChangeNothing) {
  Add(scheduler_.Options(1));
  hvd_rendezvous_job* const job = scheduler_.job;
  const hvd_rendezvous_host nameless[] = {{"", 1, nullptr}};
  const hvd_rendezvous_host empty[] = {{"a", 0, nullptr}};
  const hvd_rendezvous_host twice[] = {{"a", 1, nullptr}, {"a", 2, nullptr}};
  EXPECT_EQ(hvd_rendezvous_offer_slots(job, nameless, 1), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_rendezvous_offer_slots(job, nameless, -1), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_rendezvous_offer_slots(job, empty, 1), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_STREQ(hvd_rendezvous_last_error(),
               "host a is offered with 0 slots; it may have 1 to 65536");
  EXPECT_EQ(hvd_rendezvous_offer_slots(job, twice, 2), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_STREQ(hvd_rendezvous_last_error(), "host a is offered twice");
  const hvd_rendezvous_host broken[] = {{"a\nb", 1, nullptr}};
  const hvd_rendezvous_host placed[] = {{"a", 1, "rack\t7"}};
  EXPECT_EQ(hvd_rendezvous_offer_slots(job, broken, 1), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_TRUE(
      absl::StartsWith(hvd_rendezvous_last_error(), "the name of a host: 'a\\nb' is no name"));
  EXPECT_EQ(hvd_rendezvous_offer_slots(job, placed, 1), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_TRUE(
      absl::StartsWith(hvd_rendezvous_last_error(), "the machine of a host: 'rack\\t7' is no"));
  EXPECT_EQ(hvd_rendezvous_drain(job, nullptr, 1, "x"), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_rendezvous_drain(job, "a", -1, "x"), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_rendezvous_request_stop(job, "x", 256, 1), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  hvd_rendezvous_exit exit = {};
  EXPECT_EQ(hvd_rendezvous_report_exit(job, &exit), HVD_RENDEZVOUS_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(Text(hvd_rendezvous_describe, job), "\"hosts\":[]"));
  EXPECT_EQ(hvd_rendezvous_remove_job(job), 0);
}

TEST_F(CApiTest, RequestStop_EndsTheJobWithItsCode) {
  Add(scheduler_.Options(1));
  Offer("here", 1);
  const Start start = scheduler_.starts.Next();
  EXPECT_EQ(hvd_rendezvous_request_stop(scheduler_.job, "enough", 130, 5), 0);
  EXPECT_EQ(scheduler_.stops.Next(), start.worker);
  hvd_rendezvous_exit exit = {};
  exit.size = sizeof(exit);
  exit.worker = start.worker;
  exit.start_error = "never was there";
  EXPECT_EQ(hvd_rendezvous_report_exit(scheduler_.job, &exit), 0);
  EXPECT_TRUE(absl::StartsWith(scheduler_.results.Next(), "130 "));
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

TEST_F(CApiTest, Metrics_OfAllJobs_AndOfOne) {
  hvd_rendezvous_job_options options = scheduler_.Options(1);
  options.id = "one";
  Add(options);
  options.id = "two";
  hvd_rendezvous_job* two = nullptr;
  ASSERT_EQ(hvd_rendezvous_add_job(server_, &options, &two), 0);
  const std::string all = Text(hvd_rendezvous_metrics, server_);
  const std::string one = Text(hvd_rendezvous_job_metrics, scheduler_.job);
  EXPECT_TRUE(absl::StrContains(all, "job=\"one\"") && absl::StrContains(all, "job=\"two\""));
  EXPECT_TRUE(absl::StrContains(one, "job=\"one\"") && !absl::StrContains(one, "job=\"two\""));
  EXPECT_EQ(hvd_rendezvous_remove_job(two), 0);
  EXPECT_EQ(hvd_rendezvous_remove_job(scheduler_.job), 0);
}

}  // namespace
}  // namespace hvd::rendezvous::c_api
