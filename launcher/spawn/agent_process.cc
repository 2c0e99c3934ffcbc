#include "launcher/spawn/agent_process.h"

#include <limits.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "agent/protocol/agent_frames.h"
#include "agent/protocol/agent_protocol.h"
#include "base/env.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "base/os/signals.h"
#include "base/status_macros.h"
#include "base/version.h"

namespace hvd::launcher::spawn {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// How long the pipes are read after the process has ended. Others may hold them open: an agent
// whose guard was killed is still cleaning up, and an ssh that shares its connection
// (ControlMaster) leaves a background process with this stderr behind.
constexpr absl::Duration kLastWordsTime = absl::Seconds(2);
// How long the guard has to end after its agent. No other agent can take the host's place before.
constexpr absl::Duration kGuardTime = absl::Seconds(10);

// The directory of the running program; empty if the kernel does not provide it.
std::string OwnDirectory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "";
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

// This process's environment without `names`; nullopt if nothing is to be removed.
std::optional<std::vector<std::string>> EnvironmentWithout(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  Environment environment = ReadEnvironment();
  for (const std::string& name : names) environment.erase(name);
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

// The pipes to the child. The child's ends are closed in this process after the spawn, so that the
// end of the child's output is detected.
struct StdioPipes {
  Pipe input, output, error;
};

absl::StatusOr<StdioPipes> MakeStdioPipes() {
  StdioPipes pipes;
  ASSIGN_OR_RETURN(pipes.input, MakePipe());
  ASSIGN_OR_RETURN(pipes.output, MakePipe());
  ASSIGN_OR_RETURN(pipes.error, MakePipe());
  RETURN_IF_ERROR(SetNonBlocking(pipes.input.write.get()));
  RETURN_IF_ERROR(SetNonBlocking(pipes.output.read.get()));
  RETURN_IF_ERROR(SetNonBlocking(pipes.error.read.get()));
  return pipes;
}

// One thread per agent, to which all members belong. It also spawns the process: the death signal
// (PR_SET_PDEATHSIG) fires when the thread that has spawned the process ends.
class RunningAgent : public AgentProcess {
 public:
  RunningAgent(const AgentTarget& target, const pb::AgentBootstrap& bootstrap, Callbacks callbacks,
               std::unique_ptr<EventLoop> loop)
      : target_(target),
        callbacks_(std::move(callbacks)),
        input_left_(net::EncodeFrame(bootstrap.SerializeAsString())),
        loop_(std::move(loop)) {}

  ~RunningAgent() override {
    Kill();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start() {
    std::promise<absl::Status> started;
    std::future<absl::Status> result = started.get_future();
    thread_ = std::thread([this, &started] { RunThread(started); });
    // Waits for the thread, so that a failure to start the process is an error of this call.
    return result.get();
  }

  void CloseInput() override {
    loop_->Post([this] { EndInput(); });
  }

  void Kill() override {
    loop_->Post([this] { KillNow(); });
  }

 private:
  void RunThread(std::promise<absl::Status>& started) {
    // Signals are for the launcher's main thread. SIGPIPE is blocked too: write() reports the
    // error.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    absl::Status status = Spawn();
    if (status.ok()) status = WatchAll();
    const bool ok = status.ok();
    started.set_value(std::move(status));
    if (!ok) return;
    loop_->Run();
    CloseAll();
    if (callbacks_.on_exit) callbacks_.on_exit(exit_);
  }

  absl::Status Spawn() {
    const std::string directory = OwnDirectory();
    const AgentInvocation command = target_.launcher->Command(target_.host, directory);
    ASSIGN_OR_RETURN(StdioPipes pipes, MakeStdioPipes());
    os::SpawnOptions options;
    options.file = command.file;
    options.argv = command.argv;
    options.environment = EnvironmentWithout(command.without);
    // ssh would end by them, and the host be lost. A local agent takes them nevertheless.
    options.ignored_signals = {os::kNoticeSignals.begin(), os::kNoticeSignals.end()};
    // Not SIGKILL: the guard passes SIGHUP on, sees to the end of an agent that is stopped, and
    // ends what that has left.
    if (target_.local) options.death_signal = SIGHUP;
    // In a new session Ctrl-C does not reach the process, and it can't prompt on the terminal.
    options.group = os::SpawnOptions::Group::kNewSession;
    options.stdin_fd = pipes.input.read.get();
    options.stdout_fd = pipes.output.write.get();
    options.stderr_fd = pipes.error.write.get();
    ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
    process_.emplace(std::move(process));
    input_ = std::move(pipes.input.write);
    output_ = std::move(pipes.output.read);
    error_ = std::move(pipes.error.read);
    return absl::OkStatus();
  }

  absl::Status WatchAll() {
    RETURN_IF_ERROR(loop_->Watch(input_.get(), EPOLLOUT, [this](uint32_t) { OnInput(); }));
    RETURN_IF_ERROR(loop_->Watch(output_.get(), EPOLLIN, [this](uint32_t) { OnOutput(); }));
    RETURN_IF_ERROR(loop_->Watch(error_.get(), EPOLLIN, [this](uint32_t) { OnError(); }));
    return loop_->Watch(process_->pidfd(), EPOLLIN, [this](uint32_t) { OnExit(); });
  }

  void OnInput() {
    const IoResult put = WriteSome(input_.get(), input_left_);
    input_left_.erase(0, put.bytes);
    // After the bootstrap the pipe stays open: its end tells the agent that the launcher is gone.
    if (input_left_.empty()) loop_->Change(input_.get(), 0);
    if (put.end) EndInput();
  }

  void OnOutput() {
    char buffer[kReadBytes];
    const IoResult got = ReadSome(output_.get(), buffer, sizeof(buffer));
    if (got.end) return OnAgentEnd();
    const absl::Status status = stream_.Append(
        {buffer, got.bytes}, [this](pb::AgentFrame&& frame) { OnFrame(std::move(frame)); });
    if (status.ok()) return;
    // The stream can't be read on: without valid frames their boundaries are unknown.
    Refuse(absl::StrCat(target_.host, ": the program that answered there is not ",
                        agent::protocol::kAgentProgram, " ", kVersion, " (", status.message(),
                        "); install this version of horovod on that host"));
    Close(output_);
  }

  // The agent alone holds the output.
  void OnAgentEnd() {
    Close(output_);
    // A guard that was stopped (SIGSTOP) has to go on: only it ends what the agent has left.
    if (!exited_) process_->Signal(SIGCONT);
    loop_->After(kGuardTime, [this] { KillNow(); });
  }

  void OnFrame(pb::AgentFrame&& frame) {
    if (refused_) return;
    switch (frame.frame_case()) {
      case pb::AgentFrame::kReady:
        return OnReady(frame.ready());
      case pb::AgentFrame::kRefusal:
        return Refuse(frame.refusal().message());
      case pb::AgentFrame::kOutput:
        if (callbacks_.on_output) callbacks_.on_output(std::move(*frame.mutable_output()));
        return;
      case pb::AgentFrame::FRAME_NOT_SET:
        return;
    }
  }

  void OnReady(const pb::AgentReady& ready) {
    if (ready.version() != kVersion) {
      return Refuse(absl::StrCat(target_.host, ": ", agent::protocol::kAgentProgram,
                                 " there is version ", ready.version(), ", here it is ", kVersion,
                                 "; install the same version of horovod on every host"));
    }
    if (callbacks_.on_ready) callbacks_.on_ready(ready.warning());
  }

  void Refuse(const std::string& message) {
    if (refused_) return;
    refused_ = true;
    if (callbacks_.on_refusal) callbacks_.on_refusal(message);
    EndInput();
  }

  void OnError() {
    char buffer[kReadBytes];
    const IoResult got = ReadSome(error_.get(), buffer, sizeof(buffer));
    error_tail_.Append({buffer, got.bytes});
    if (got.end) Close(error_);
  }

  void OnExit() {
    loop_->Forget(process_->pidfd());
    const os::ExitStatus status = process_->Wait();
    exit_.exit_code = status.exit_code;
    exit_.signal = status.signal;
    exited_ = true;
    // on_exit follows when both pipes have ended, or after kLastWordsTime.
    loop_->After(kLastWordsTime, [this] { loop_->Stop(); });
    StopIfOver();
  }

  void EndInput() {
    input_left_.clear();
    Close(input_);
  }

  void KillNow() {
    // Not after the exit, with which OnExit has reaped the process.
    if (process_.has_value() && !exited_) process_->Signal(SIGKILL);
    EndInput();
  }

  void Close(Fd& fd) {
    if (!fd.valid()) return;
    loop_->Forget(fd.get());
    fd.reset();
    StopIfOver();
  }

  void StopIfOver() {
    if (exited_ && !output_.valid() && !error_.valid()) loop_->Stop();
  }

  void CloseAll() {
    Close(input_);
    Close(output_);
    Close(error_);
    // If no agent was started, the output of the login shell helps to explain the failure.
    exit_.stderr_text = absl::StrCat(stream_.noise(), error_tail_.text());
  }

  const AgentTarget target_;
  const Callbacks callbacks_;
  std::string input_left_;
  std::unique_ptr<EventLoop> loop_;
  Fd input_, output_, error_;
  std::optional<os::Process> process_;
  agent::protocol::AgentFrameReader stream_;
  agent::protocol::TextTail error_tail_;
  AgentExit exit_;
  bool exited_ = false;
  bool refused_ = false;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AgentProcess>> AgentProcess::Start(
    const AgentTarget& target, const pb::AgentBootstrap& bootstrap, Callbacks callbacks) {
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  auto agent =
      std::make_unique<RunningAgent>(target, bootstrap, std::move(callbacks), std::move(loop));
  const absl::Status status = agent->Start();
  if (status.ok()) return std::unique_ptr<AgentProcess>(std::move(agent));
  return absl::Status(status.code(), absl::StrCat(target.host, ": ", status.message()));
}

}  // namespace hvd::launcher::spawn
