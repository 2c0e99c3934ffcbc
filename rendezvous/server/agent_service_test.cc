#include "rendezvous/server/agent_service.h"

#include <atomic>
#include <memory>
#include <string>

#include "base/version.h"
#include "gtest/gtest.h"
#include "rendezvous/server/in_process_test_util.h"

namespace hvd::rendezvous::server {
namespace {

// An agent as gRPC's blocking stream.
class TestAgent {
 public:
  explicit TestAgent(pb::Agent::Stub& stub) : stream_(stub.Attach(&context_)) {}
  ~TestAgent() {
    context_.TryCancel();
    if (!ended_) stream_->Finish();
  }

  bool Send(const pb::AgentMessage& message) { return stream_->Write(message); }

  void Hello(const std::string& host, uint64_t incarnation, uint32_t slots = 2,
             const std::string& version = kVersion, const std::string& store_address = "",
             const std::string& machine = "", const std::string& command = "") {
    pb::AgentMessage message;
    message.mutable_hello()->set_version(version);
    message.mutable_hello()->set_host(host);
    message.mutable_hello()->set_machine(machine);
    message.mutable_hello()->set_slots(slots);
    message.mutable_hello()->set_incarnation(incarnation);
    message.mutable_hello()->set_store_address(store_address);
    message.mutable_hello()->set_command(command);
    Send(message);
  }

  // The next command; an empty one if the stream is over.
  pb::AgentCommand Next() {
    pb::AgentCommand command;
    stream_->Read(&command);
    return command;
  }

  void HangUp() { stream_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }

  grpc::Status End() {
    while (Next().command_case() != pb::AgentCommand::COMMAND_NOT_SET) {
    }
    ended_ = true;
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::AgentMessage, pb::AgentCommand>> stream_;
  bool ended_ = false;
};

class AgentServiceTest : public testing::Test {
 protected:
  grpc::StatusCode RefusalOf(const std::string& host, uint64_t incarnation, uint32_t slots,
                             const std::string& version, const std::string& machine = "") {
    TestAgent agent(*stub_);
    agent.Hello(host, incarnation, slots, version, "", machine);
    return agent.End().error_code();
  }

  // Attaches and takes the welcome and the event away.
  void Attach(TestAgent& agent, const std::string& host, uint64_t incarnation) {
    agent.Hello(host, incarnation);
    EXPECT_EQ(agent.Next().welcome().job_id(), "job");
    EXPECT_EQ(NextEvent<membership::HostJoined>(events_).host.host, host);
  }

  AgentServiceOptions Options() {
    AgentServiceOptions options;
    options.welcome.set_job_id("job");
    options.welcome.set_elastic(true);
    options.welcome.set_reattach_ms(30000);
    options.post = [this](membership::Event event) { events_.Put(std::move(event)); };
    options.check_room = [this] {
      return full_ ? absl::UnavailableError("too much waits") : absl::OkStatus();
    };
    return options;
  }

  Inbox<membership::Event> events_;
  std::atomic<bool> full_{false};
  AgentService service_{Options()};
  InProcessServer server_{&service_};
  std::unique_ptr<pb::Agent::Stub> stub_ = pb::Agent::NewStub(server_.channel());
};

TEST_F(AgentServiceTest, Hello_IsWelcomedAndAnnounced) {
  TestAgent agent(*stub_);
  agent.Hello("a", 9, 4);
  EXPECT_EQ(agent.Next().ShortDebugString(),
            "welcome { job_id: \"job\" elastic: true reattach_ms: 30000 }");
  const auto event = NextEvent<membership::HostJoined>(events_);
  EXPECT_EQ(event.host.host, "a");
  EXPECT_EQ(event.host.slots, 4);
  EXPECT_EQ(event.agent, Incarnation(9));
}

TEST_F(AgentServiceTest, Hello_WithAMachine_AnnouncesIt) {
  TestAgent agent(*stub_);
  pb::AgentMessage message;
  pb::AgentHello& hello = *message.mutable_hello();
  hello.set_version(kVersion);
  hello.set_host("a");
  hello.set_machine("m");
  hello.set_slots(1);
  hello.set_incarnation(9);
  agent.Send(message);
  EXPECT_EQ(NextEvent<membership::HostJoined>(events_).host.machine, "m");
}

TEST_F(AgentServiceTest, Command_OfAnyBytes_IsALineOfUtf8) {
  EXPECT_EQ(service_.command(), "");
  TestAgent agent(*stub_);
  agent.Hello("a", 9, 1, kVersion, "", "", "python \xff\n\x1b[2J " + std::string(1 << 20, 'x'));
  NextEvent<membership::HostJoined>(events_);
  EXPECT_EQ(service_.command().rfind("python \xef\xbf\xbd\\n\\x1b[2J xxx", 0), 0u)
      << service_.command();
  EXPECT_LT(service_.command().size(), 5000u);
}

TEST_F(AgentServiceTest, Hello_ThatCantBe_IsRefused) {
  EXPECT_EQ(RefusalOf("", 9, 1, kVersion), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf("a", 9, 0, kVersion), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf("a", 9, 4000000000u, kVersion), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf("a", 0, 1, kVersion), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf("a\nhost b is lost", 9, 1, kVersion), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf("\x1b[2Ja", 9, 1, kVersion), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf(std::string(256, 'a'), 9, 1, kVersion), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf("a", 9, 1, kVersion, "m\r"), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(RefusalOf("a", 9, 1, "0.9"), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(events_.empty());
}

TEST_F(AgentServiceTest, NoHelloFirst_IsRefused) {
  TestAgent agent(*stub_);
  pb::AgentMessage message;
  message.mutable_exited()->set_worker_id(1);
  agent.Send(message);
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events_.empty());
}

TEST_F(AgentServiceTest, NothingAtAll_IsRefused) {
  TestAgent agent(*stub_);
  agent.HangUp();
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events_.empty());
}

TEST_F(AgentServiceTest, SecondAgentOfAHost_IsRefused_AndTheFirstStays) {
  TestAgent first(*stub_);
  Attach(first, "a", 9);
  EXPECT_EQ(RefusalOf("a", 10, 1, kVersion), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_TRUE(events_.empty());
  service_.Handle(membership::EndJobEffect{Incarnation(9), "a", absl::ZeroDuration(), 7, "why"});
  EXPECT_TRUE(first.Next().has_end());
}

TEST_F(AgentServiceTest, SameAgentAgain_TakesItsOwnPlace_AndNoHostIsLost) {
  TestAgent first(*stub_);
  Attach(first, "a", 9);
  TestAgent second(*stub_);
  second.Hello("a", 9);
  EXPECT_TRUE(second.Next().has_welcome());
  EXPECT_EQ(NextEvent<membership::HostJoined>(events_).agent, Incarnation(9));
  EXPECT_EQ(first.End().error_code(), grpc::StatusCode::ABORTED);
  service_.Handle(membership::EndJobEffect{Incarnation(9), "a", absl::ZeroDuration(), 7, "why"});
  EXPECT_TRUE(second.Next().has_end());
  second.HangUp();
  EXPECT_EQ(NextEvent<membership::HostLost>(events_).agent, Incarnation(9));
  EXPECT_TRUE(events_.empty());
}

TEST_F(AgentServiceTest, KnownWorkers_AreAnnounced) {
  TestAgent agent(*stub_);
  pb::AgentMessage message;
  message.mutable_hello()->set_version(kVersion);
  message.mutable_hello()->set_host("a");
  message.mutable_hello()->set_slots(1);
  message.mutable_hello()->set_incarnation(9);
  message.mutable_hello()->add_known_workers(4);
  agent.Send(message);
  EXPECT_EQ(NextEvent<membership::HostJoined>(events_).known_workers,
            std::vector<WorkerId>{WorkerId(4)});
}

TEST_F(AgentServiceTest, DyingAndDraining_BecomeEvents) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  pb::AgentMessage message;
  message.mutable_dying()->set_worker_id(3);
  agent.Send(message);
  EXPECT_EQ(NextEvent<membership::WorkerDying>(events_).worker, WorkerId(3));
  message.mutable_draining()->set_grace_ms(1500);
  message.mutable_draining()->set_reason("spot");
  agent.Send(message);
  const auto draining = NextEvent<membership::HostDraining>(events_);
  EXPECT_EQ(draining.host, "a");
  EXPECT_EQ(draining.grace, absl::Milliseconds(1500));
  EXPECT_EQ(draining.reason, "spot");
}

TEST_F(AgentServiceTest, Sample_IsAskedForAndAnswered) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  service_.Handle(membership::SampleWorkerEffect{Incarnation(9), "a", WorkerId(3)});
  EXPECT_EQ(agent.Next().sample().worker_id(), 3u);
  pb::AgentMessage message;
  message.mutable_sampled()->set_worker_id(3);
  message.mutable_sampled()->set_doing("is at a.py:1 in f");
  message.mutable_sampled()->add_stack("a.py:1 in f");
  agent.Send(message);
  const auto sampled = NextEvent<membership::WorkerSampled>(events_);
  EXPECT_EQ(sampled.worker, WorkerId(3));
  EXPECT_EQ(sampled.doing, "is at a.py:1 in f");
  EXPECT_EQ(sampled.stack, std::vector<std::string>{"a.py:1 in f"});
}

TEST_F(AgentServiceTest, MessageWithANumberThatCantBe_EndsTheStream) {
  pb::AgentMessage pid, negative, signal;
  pid.mutable_started()->set_pid(int64_t{1} << 40);
  negative.mutable_started()->set_pid(-1);
  signal.mutable_exited()->set_signal(65);
  for (const pb::AgentMessage& message : {pid, negative, signal}) {
    TestAgent agent(*stub_);
    Attach(agent, "a", 9);
    agent.Send(message);
    const grpc::Status end = agent.End();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << end.error_message();
    EXPECT_EQ(NextEvent<membership::HostLost>(events_).reason, end.error_message());
  }
}

TEST_F(AgentServiceTest, Leaving_IsTheReasonOfTheLoss) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  pb::AgentMessage message;
  message.mutable_leaving()->set_reason("its agent got SIGTERM");
  agent.Send(message);
  agent.HangUp();
  EXPECT_EQ(NextEvent<membership::HostLost>(events_).reason, "its agent got SIGTERM");
}

TEST_F(AgentServiceTest, AfterTheJob_NobodyIsWelcome) {
  service_.JobOver();
  EXPECT_EQ(RefusalOf("a", 9, 1, kVersion), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(AgentServiceTest, Messages_BecomeEventsInOrder) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  pb::AgentMessage message;
  message.mutable_started()->set_worker_id(1);
  message.mutable_started()->set_pid(77);
  agent.Send(message);
  pb::WorkerExited& exited = *message.mutable_exited();
  exited.set_worker_id(1);
  exited.set_exit_code(3);
  exited.set_signal(9);
  exited.set_core_dumped(true);
  exited.set_out_of_memory(true);
  exited.add_stderr_tail("line");
  exited.set_start_error("no such file");
  agent.Send(message);
  EXPECT_EQ(NextEvent<membership::WorkerStarted>(events_).pid, 77);
  const auto event = NextEvent<membership::WorkerExited>(events_);
  EXPECT_EQ(event.worker, WorkerId(1));
  EXPECT_EQ(event.exit_code, 3);
  EXPECT_EQ(event.signal, 9);
  EXPECT_TRUE(event.core_dumped && event.out_of_memory);
  EXPECT_EQ(event.stderr_tail, std::vector<std::string>{"line"});
  EXPECT_EQ(event.start_error, "no such file");
}

TEST_F(AgentServiceTest, MessageAboutAnotherHostsWorker_IsIgnored) {
  TestAgent one(*stub_), other(*stub_);
  Attach(one, "a", 9);
  Attach(other, "b", 10);
  service_.Handle(
      membership::StartWorkerEffect{Incarnation(9), "a", WorkerId(1), {0, 2, 0, 1, 0, 2}, 0});
  pb::AgentMessage message;
  message.mutable_dying()->set_worker_id(1);
  other.Send(message);
  message.mutable_sampled()->set_worker_id(1);
  other.Send(message);
  message.mutable_started()->set_worker_id(1);
  other.Send(message);
  message.mutable_exited()->set_worker_id(1);
  other.Send(message);
  message.mutable_exited()->set_worker_id(2);  // of whom nothing is known
  other.Send(message);
  EXPECT_EQ(NextEvent<membership::WorkerExited>(events_).worker, WorkerId(2));
  message.mutable_exited()->set_worker_id(1);
  one.Send(message);
  EXPECT_EQ(NextEvent<membership::WorkerExited>(events_).worker, WorkerId(1));
}

TEST_F(AgentServiceTest, Effects_BecomeCommandsInOrder) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  service_.Handle(
      membership::StartWorkerEffect{Incarnation(9), "a", WorkerId(1), {2, 8, 1, 4, 0, 2}, 3});
  service_.Handle(
      membership::StopWorkersEffect{Incarnation(9), "a", {WorkerId(1)}, absl::Seconds(2)});
  service_.Handle(membership::HoldHostEffect{Incarnation(9), "a"});
  service_.Handle(
      membership::EndJobEffect{Incarnation(9), "a", absl::InfiniteDuration(), 7, "why"});
  EXPECT_EQ(agent.Next().ShortDebugString(),
            "start { worker_id: 1 placement { rank: 2 size: 8 local_rank: 1 local_size: 4 "
            "cross_size: 2 } "
            "slot: 3 }");
  EXPECT_EQ(agent.Next().ShortDebugString(), "stop { worker_ids: 1 grace_ms: 2000 }");
  EXPECT_EQ(agent.Next().ShortDebugString(),
            "hold { reason: \"host a waits until it is offered to the job\" }");
  EXPECT_EQ(agent.Next().ShortDebugString(),
            "end { grace_ms: 4294967295 exit_code: 7 summary: \"why\" }");
}

TEST_F(AgentServiceTest, GroupOfTorch_IsReportedAndAnnounced) {
  TestAgent agent(*stub_);
  agent.Hello("a", 9, 1, kVersion, "10.0.0.1:80");
  EXPECT_TRUE(agent.Next().has_welcome());
  EXPECT_EQ(NextEvent<membership::HostJoined>(events_).store_address, "10.0.0.1:80");
  service_.Handle(membership::StartWorkerEffect{
      Incarnation(9), "a", WorkerId(2), {}, 0, 0, {"10.0.0.1:80", 1, 2}});
  EXPECT_EQ(agent.Next().start().torch().ShortDebugString(),
            "store_address: \"10.0.0.1:80\" group_rank: 1 groups: 2");
}

TEST_F(AgentServiceTest, InvalidStoreAddress_IsRefused) {
  for (const char* address : {"10.0.0.1\nLD_PRELOAD=x:80", "10.0.0.1:0", "10.0.0.1:65536"}) {
    TestAgent agent(*stub_);
    agent.Hello("a", 9, 1, kVersion, address);
    EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << address;
  }
}

TEST_F(AgentServiceTest, EffectForAnAgentOfBefore_IsNotSentToTheOneOfNow) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  service_.Handle(membership::EndJobEffect{Incarnation(8), "a", absl::ZeroDuration(), 7, "why"});
  service_.Handle(membership::EndJobEffect{Incarnation(9), "b", absl::ZeroDuration(), 7, "why"});
  service_.Handle(membership::StopWorkersEffect{Incarnation(9), "a", {}, absl::ZeroDuration()});
  EXPECT_TRUE(agent.Next().has_stop());
}

TEST_F(AgentServiceTest, TooMuchWaits_StreamEnds_AndTheHostMayComeAgain) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  full_ = true;
  pb::AgentMessage message;
  message.mutable_kept()->set_commit(1);
  agent.Send(message);
  agent.HangUp();
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(NextEvent<membership::HostLost>(events_).reason, "too much waits");
  EXPECT_EQ(RefusalOf("a", 9, 2, kVersion), grpc::StatusCode::UNAVAILABLE);
  full_ = false;
  TestAgent again(*stub_);
  Attach(again, "a", 9);
}

TEST_F(AgentServiceTest, AgentHangsUp_HostIsLost_AndMayComeAgain) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  agent.HangUp();
  const auto lost = NextEvent<membership::HostLost>(events_);
  EXPECT_EQ(lost.host, "a");
  EXPECT_EQ(lost.agent, Incarnation(9));
  EXPECT_FALSE(lost.reason.empty());
  EXPECT_TRUE(agent.End().ok());
  TestAgent again(*stub_);
  Attach(again, "a", 10);
}

TEST_F(AgentServiceTest, AgentDies_HostIsLostOnce) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  agent.Cancel();
  NextEvent<membership::HostLost>(events_);
  TestAgent again(*stub_);
  Attach(again, "a", 10);
  EXPECT_TRUE(events_.empty());
}

TEST_F(AgentServiceTest, Close_SendsWhatIsQueuedThenEndsTheStream) {
  TestAgent agent(*stub_);
  Attach(agent, "a", 9);
  for (int i = 0; i < 50; ++i) {
    service_.Handle(membership::StopWorkersEffect{Incarnation(9), "a", {}, absl::ZeroDuration()});
  }
  service_.Handle(membership::EndJobEffect{Incarnation(9), "a", absl::ZeroDuration(), 7, "why"});
  service_.Close(absl::OkStatus());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(agent.Next().has_stop());
  EXPECT_TRUE(agent.Next().has_end());
  EXPECT_TRUE(agent.End().ok());
}

TEST_F(AgentServiceTest, Close_EndsStreamsWithoutHelloAndLaterOnes) {
  TestAgent silent(*stub_);
  service_.Close(absl::FailedPreconditionError("over"));
  EXPECT_EQ(silent.End().error_message(), "over");
  TestAgent later(*stub_);
  EXPECT_EQ(later.End().error_message(), "over");
}

}  // namespace
}  // namespace hvd::rendezvous::server
