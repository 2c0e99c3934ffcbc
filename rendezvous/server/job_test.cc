#include "rendezvous/server/job.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rendezvous/journal/memory_journal_test_util.h"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd::rendezvous::server {
namespace {

// Stands still until it is set.
class SetClock : public Clock {
 public:
  absl::Time Now() override { return absl::FromUnixSeconds(seconds_); }
  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time) override {
    mutex.Await(condition);
    return true;
  }
  void Set(int64_t seconds) { seconds_ = seconds; }

 private:
  std::atomic<int64_t> seconds_{1000};
};

class JobTest : public testing::Test {
 protected:
  JobOptions Options() {
    JobOptions options;
    options.job_id = "job";
    options.spec.expected_hosts = {{"a", 1}};
    options.secret_key = "key";
    options.journal = &journal_;
    options.on_finished = [this](const membership::Verdict& verdict) { verdicts_.Put(verdict); };
    options.on_journal_error = [this](const absl::Status& status) { errors_.Put(status); };
    return options;
  }

  std::unique_ptr<Job> Start() {
    auto job = Job::Create(Options(), clock_);
    EXPECT_TRUE(job.ok()) << job.status();
    return std::move(job).value();
  }

  template <typename Kind>
  int Count() {
    int count = 0;
    for (const auto& record : journal_.records()) {
      if (std::holds_alternative<Kind>(record.first)) ++count;
    }
    return count;
  }

  SetClock clock_;
  journal::MemoryJournal journal_{absl::FromUnixSeconds(1000)};
  Inbox<membership::Verdict> verdicts_;
  Inbox<absl::Status> errors_;
};

const membership::HostJoined kHostA{{"a", 1}, Incarnation(9), {}};

TEST_F(JobTest, NewJournal_JobBegins_WithoutARestart) {
  EXPECT_EQ(Start()->Report()->view.state, lifecycle::JobState::kForming);
  EXPECT_EQ(Count<membership::Restarted>(), 0);
}

TEST_F(JobTest, EventsAreJournaled_ExceptWatches) {
  const auto job = Start();
  job->Post(kHostA);
  job->Post(
      membership::WatchRequested{membership::CallId(1), {WorkerId(1), Incarnation(1)}, Epoch(1)});
  job->Report();
  EXPECT_EQ(Count<membership::HostJoined>(), 1);
  EXPECT_EQ(Count<membership::WatchRequested>(), 0);
}

TEST_F(JobTest, OldJournal_JobGoesOnWhereItWas) {
  {
    const auto job = Start();
    job->Post(kHostA);
    ASSERT_EQ(job->Report()->view.hosts.size(), 1u);
    ASSERT_EQ(job->Report()->view.hosts[0].workers.size(), 1u);
  }
  const auto job = Start();
  EXPECT_EQ(job->Report()->view.hosts.at(0).workers.size(), 1u);
  EXPECT_EQ(Count<membership::Restarted>(), 1);
  EXPECT_EQ(Count<membership::HostJoined>(), 1);
}

TEST_F(JobTest, OldJournal_OfAnEndedJob_IsRefusedWithItsResult) {
  {
    const auto job = Start();
    job->Post(membership::StopRequested{"enough", 3, absl::ZeroDuration()});
    verdicts_.Next();
  }
  const auto again = Job::Create(Options(), clock_);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(again.status().message().find("enough"), absl::string_view::npos) << again.status();
}

TEST_F(JobTest, LongJournal_IsReplacedByASnapshot_AndTheJobGoesOnWhereItWas) {
  journal_.CompactAfter(3);
  {
    const auto job = Start();
    for (int i = 0; i < 5; ++i) {
      job->Post(membership::HostJoined{{"a", 1}, Incarnation(9), {}});
      job->Report();
      job->Post(membership::WorkerStarted{WorkerId(1), 100 + i});
      job->Report();
    }
    EXPECT_LE(journal_.records().size(), 3u);
    EXPECT_TRUE(journal_.snapshot().has_value());
  }
  journal_.CompactAfter(1);
  {
    const auto job = Start();
    EXPECT_EQ(job->Report()->view.hosts.at(0).workers.at(0).pid, 104);
    job->Post(membership::StopRequested{"enough", 3, absl::ZeroDuration()});
    membership::WorkerExited exited;
    exited.worker = WorkerId(1);
    job->Post(exited);
    job->Post(membership::HostLost{"a", Incarnation(9), "gone"});
    verdicts_.Next();
    job->Report();
    job->Post(membership::Tick{});
    job->Report();
  }
  const auto again = Job::Create(Options(), clock_);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(again.status().message().find("enough"), absl::string_view::npos) << again.status();
}

TEST_F(JobTest, DamagedSnapshot_DataLoss) {
  ASSERT_TRUE(journal_.Compact({"no state", absl::FromUnixSeconds(1000)}).ok());
  EXPECT_EQ(Job::Create(Options(), clock_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(JobTest, JournalBreaks_NothingIsDecidedAnyMore) {
  const auto job = Start();
  journal_.Break(absl::ResourceExhaustedError("full"));
  job->Post(kHostA);
  job->Post(membership::StopRequested{"enough", 3, absl::ZeroDuration()});
  EXPECT_EQ(errors_.Next().message(), "full");
  EXPECT_EQ(job->Report()->view.state, lifecycle::JobState::kForming);
  EXPECT_TRUE(verdicts_.empty());
  EXPECT_TRUE(errors_.empty());
}

// etcd refuses what is larger than 1.5 MiB, and a journal that cannot record ends the job.
TEST_F(JobTest, LongException_IsRecordedInShort) {
  const auto job = Start();
  InProcessServer server(&job->rendezvous());
  job->Post(kHostA);
  pb::ReportRequest request;
  request.mutable_worker()->set_worker_id(1);
  request.mutable_worker()->set_incarnation(1);
  request.mutable_failure()->set_message("ValueError: " + std::string(2000000, 'x'));
  pb::ReportResponse response;
  grpc::ClientContext context;
  pb::Rendezvous::NewStub(server.channel())->Report(&context, request, &response);
  job->Report();
  ASSERT_EQ(Count<membership::Reported>(), 1);
  const auto reported = std::get<membership::Reported>(journal_.records().back().first);
  EXPECT_EQ(reported.failure.substr(0, 13), "ValueError: x");
  EXPECT_LT(reported.failure.size(), 5000u);
}

TEST_F(JobTest, RequestThatIsTooLarge_IsRefused_AndEndsNobodyElse) {
  const auto job = Start();
  InProcessServer server(&job->rendezvous());
  job->Post(kHostA);
  pb::ExchangeRequest request;
  request.mutable_worker()->set_worker_id(1);
  request.mutable_worker()->set_incarnation(1);
  request.set_key(std::string(2000000, 'k'));
  pb::ExchangeResponse response;
  grpc::ClientContext context;
  const grpc::Status status =
      pb::Rendezvous::NewStub(server.channel())->Exchange(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("the key has more than 4096 bytes"), std::string::npos)
      << status.error_message();
  EXPECT_EQ(job->Report()->view.state, lifecycle::JobState::kForming);
  EXPECT_EQ(Count<membership::ExchangeRequested>(), 0);
  EXPECT_TRUE(errors_.empty());
}

TEST_F(JobTest, MoreEventsThanItCanHandle_AreRefused) {
  const auto job = Start();
  absl::Notification begun, goes_on;
  job->Report([&](const reporting::JobReport&) {
    begun.Notify();
    goes_on.WaitForNotification();
  });
  begun.WaitForNotification();
  const auto has_room = [&] {
    return job->rendezvous().CheckRoom(grpc::CallbackServerContext(), pb::GetStatusRequest());
  };
  constexpr size_t kBytes = 1 << 20;
  for (size_t posted = 0; posted < Job::kMostWaiting; posted += kBytes) {
    EXPECT_TRUE(has_room().ok()) << posted;
    job->Post(membership::ExchangeRequested{
        membership::CallId(1), {}, Epoch(1), "key", std::string(kBytes, 'v')});
  }
  EXPECT_EQ(has_room().code(), absl::StatusCode::kUnavailable);
  goes_on.Notify();
  while (!has_room().ok()) std::this_thread::yield();
}

TEST_F(JobTest, ClockWasSetBack_TheJobsTimeGoesOn) {
  clock_.Set(5000);
  {
    const auto job = Start();
    job->Post(kHostA);
    job->Report();
  }
  clock_.Set(4000);
  const auto job = Start();
  job->Post(membership::HostLost{"a", Incarnation(9), "gone"});
  job->Report();
  absl::Time last = absl::InfinitePast();
  for (const auto& record : journal_.records()) {
    EXPECT_GE(record.second, last);
    last = record.second;
  }
  EXPECT_EQ(last, absl::FromUnixSeconds(5000));
}

// The status with which streams and calls end shows agents and workers whether to wait.
TEST_F(JobTest, Close_WithAJournal_IsAPause) {
  const auto job = Start();
  InProcessServer server(&job->agents());
  const auto stub = pb::Agent::NewStub(server.channel());
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  job->Close();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(JobTest, Close_WithoutAJournal_IsTheEnd) {
  JobOptions options = Options();
  options.journal = nullptr;
  const auto job = Job::Create(options, clock_);
  InProcessServer server(&(*job)->agents());
  const auto stub = pb::Agent::NewStub(server.channel());
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  (*job)->Close();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace hvd::rendezvous::server
