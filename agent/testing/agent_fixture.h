// A test fixture that runs an agent in a thread and plays the launcher and the daemon.
#ifndef AGENT_TESTING_AGENT_FIXTURE_H_
#define AGENT_TESTING_AGENT_FIXTURE_H_

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "agent/protocol/agent_frames.h"
#include "agent/stdio_agent.h"
#include "agent/testing/joining_program.h"
#include "base/os/process_tree.h"
#include "base/version.h"
#include "gtest/gtest.h"

namespace hvd::agent {

// The daemon's side of a link, played by the test.
class FakeAgentDaemon {
 public:
  std::unique_ptr<rendezvous::client::AgentLink> Open(
      const pb::AgentHello& hello, rendezvous::client::AgentLink::Callbacks callbacks) {
    absl::MutexLock lock(&mutex_);
    hello_ = hello;
    callbacks_ = std::move(callbacks);
    attached_ = true;
    ++hellos_;
    return std::make_unique<Link>(this);
  }
  pb::AgentHello AwaitHello() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&attached_));
    return hello_;
  }
  // The hello of the `count`th stream, once it has been opened.
  pb::AgentHello AwaitHello(int count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return hellos_ >= count; };
    mutex_.Await(absl::Condition(&enough));
    return hello_;
  }
  pb::AgentMessage NextMessage() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](std::deque<pb::AgentMessage>* messages) { return !messages->empty(); }, &messages_));
    pb::AgentMessage message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  void Send(const pb::AgentCommand& command) { callbacks().on_command(command); }
  void Close(absl::Status status) { callbacks().on_closed(std::move(status)); }
  // From now on the daemon keeps streams open that the agent has finished.
  void KeepStreams() {
    absl::MutexLock lock(&mutex_);
    keeps_streams_ = true;
  }
  void AwaitFinish() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&finished_));
  }

 private:
  class Link : public rendezvous::client::AgentLink {
   public:
    explicit Link(FakeAgentDaemon* daemon) : daemon_(daemon) {}
    void Send(pb::AgentMessage message) override {
      absl::MutexLock lock(&daemon_->mutex_);
      daemon_->messages_.push_back(std::move(message));
    }
    void Finish() override {
      if (!daemon_->KeepsFinished()) daemon_->Close(absl::OkStatus());
    }

   private:
    FakeAgentDaemon* const daemon_;
  };

  bool KeepsFinished() {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
    return keeps_streams_;
  }
  rendezvous::client::AgentLink::Callbacks callbacks() {
    absl::MutexLock lock(&mutex_);
    return callbacks_;
  }

  absl::Mutex mutex_;
  pb::AgentHello hello_;
  rendezvous::client::AgentLink::Callbacks callbacks_;
  bool attached_ = false;
  bool finished_ = false;
  bool keeps_streams_ = false;
  int hellos_ = 0;
  std::deque<pb::AgentMessage> messages_;
};

class AgentTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    BlockAgentSignals();
    os::BecomeSubreaper();
  }

  AgentTest() {
    bootstrap_.set_version(kVersion);
    bootstrap_.set_job_id("job");
    bootstrap_.set_host("node7");
    bootstrap_.set_slots(2);
    bootstrap_.mutable_credentials()->set_token("secret");
    bootstrap_.add_daemon_addresses(listener_.address());
    bootstrap_.mutable_command()->set_working_directory("/");
    (*bootstrap_.mutable_command()->mutable_environment())["PATH"] = "/usr/bin:/bin";
  }
  ~AgentTest() override {
    input_.write.reset();
    output_.read.reset();
    if (thread_.joinable()) thread_.join();
  }

  void SetScript(const std::string& script) {
    for (const char* argument : {"sh", "-c"}) bootstrap_.mutable_command()->add_argv(argument);
    bootstrap_.mutable_command()->add_argv(script);
  }
  // Starts the agent; its workers run the script.
  void StartAgent() {
    thread_ = std::thread([this] {
      std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
      exit_code_ = RunStdioAgent(
          *loop, input_.read.get(), output_.write.get(),
          [this](const std::string& address, const rendezvous::security::PeerCredentials&,
                 const pb::AgentHello& hello, rendezvous::client::AgentLink::Callbacks callbacks,
                 const rendezvous::transport::Patience& patience) {
            link_patience_ = patience;
            link_address_ = address;
            return daemon_.Open(hello, std::move(callbacks));
          },
          settings_);
      output_.write.reset();
    });
    ASSERT_TRUE(net::WriteFrame(input_.write.get(), bootstrap_.SerializeAsString()).ok());
  }
  // Gives scripts a stand-in for a worker's hvd.init(); see page_holder_main.cc.
  void OfferHolder() {
    (*bootstrap_.mutable_command()->mutable_environment())["HOLDER"] =
        absl::StrCat(std::filesystem::current_path().string(), "/agent/testing/page_holder");
  }
  // StartAgent, then the daemon's part up to the worker's WorkerStarted.
  void StartWorker(const std::string& script) {
    SetScript(script);
    StartAgent();
    daemon_.AwaitHello();
    SendWelcome();
    SendStart(1);
    ASSERT_EQ(daemon_.NextMessage().started().worker_id(), 1u);
  }
  void SendWelcome() {
    pb::AgentCommand command;
    *command.mutable_welcome() = welcome_;
    daemon_.Send(command);
  }
  void SendStart(uint64_t id, uint32_t slot = 0) {
    pb::AgentCommand command;
    command.mutable_start()->set_worker_id(id);
    command.mutable_start()->mutable_placement()->set_rank(static_cast<int>(id) - 1);
    command.mutable_start()->mutable_placement()->set_size(2);
    command.mutable_start()->set_slot(slot);
    daemon_.Send(command);
  }
  void SendStop(uint64_t id, uint32_t grace_ms) {
    pb::AgentCommand command;
    command.mutable_stop()->add_worker_ids(id);
    command.mutable_stop()->set_grace_ms(grace_ms);
    daemon_.Send(command);
  }
  void SendEnd() {
    pb::AgentCommand command;
    command.mutable_end();
    daemon_.Send(command);
  }
  pb::WorkerExited AwaitExited() { return daemon_.NextMessage().exited(); }

  // The next frame of the agent's stdout; an empty one at its end.
  pb::AgentFrame NextFrame() {
    while (frames_.empty()) {
      char buffer[4096];
      const IoResult got = ReadSome(output_.read.get(), buffer, sizeof(buffer));
      if (got.end) return {};
      EXPECT_TRUE(
          stream_
              .Append({buffer, got.bytes},
                      [this](pb::AgentFrame&& frame) { frames_.push_back(std::move(frame)); })
              .ok());
    }
    pb::AgentFrame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  // The next line of output.
  std::string NextLine() {
    pb::AgentFrame frame = NextFrame();
    while (frame.has_ready()) frame = NextFrame();
    return frame.output().line();
  }
  // Reads a number that a worker has written.
  pid_t NextPid() { return std::stoi(NextLine()); }

  int Join() {
    thread_.join();
    return exit_code_;
  }

  const BoundSocket listener_{8};
  FakeAgentDaemon daemon_;
  std::string link_address_;  // once attached
  rendezvous::transport::Patience link_patience_;
  pb::AgentBootstrap bootstrap_;
  pb::AgentWelcome welcome_;
  AgentSettings settings_;
  Pipe input_ = MakePipe().value();
  Pipe output_ = MakePipe().value();
  protocol::AgentFrameReader stream_;
  std::deque<pb::AgentFrame> frames_;
  int exit_code_ = -1;
  std::thread thread_;
};

// Whether the process is dead and reaped.
inline bool IsGone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace hvd::agent

#endif  // AGENT_TESTING_AGENT_FIXTURE_H_
