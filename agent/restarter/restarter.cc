#include "agent/restarter/restarter.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "agent/restarter/rank_variables.h"
#include "base/env.h"
#include "base/net/tcp_socket.h"
#include "base/os/liveness_page.h"
#include "base/os/process_limits.h"
#include "base/settings/runtime_settings.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "collectives/key_exchange.h"
#include "worker_runtime/session/agent_session.h"
#include "worker_runtime/session/bootstrap.h"

namespace hvd::agent::restarter {
namespace {

using worker_runtime::session::EpochEvent;
using worker_runtime::session::JoinAnswer;
using worker_runtime::session::Peer;
using worker_runtime::session::WorkerWorld;

constexpr char kName[] = "horovod-restart";  // of the process; the kernel takes 15 characters
constexpr absl::Duration kJoinTimeout = absl::Minutes(10);
constexpr absl::Duration kQuestionTimeout = absl::Seconds(2);
constexpr absl::Duration kFinishTimeout = absl::Seconds(30);
// For the slowest rank's command to end after that of the fastest. The watch says if it will not.
constexpr absl::Duration kTraining = absl::Hours(24 * 365);
constexpr char kDone[] = "restarter.done";

constexpr int kEndSignals[] = {SIGTERM, SIGINT, SIGHUP};

os::ExitStatus Code(int code) { return {code, 0, false}; }

// Best effort, as in every worker: without the page the agent notices this process's end a little
// later.
void HoldLiveness(Fd fd) {
  if (!fd.valid()) return;
  absl::StatusOr<os::LivenessPage> page = os::LivenessPage::Map(std::move(fd));
  if (!page.ok() || !page->HoldForever().ok()) return;
  // Until the end of the process, which is all that the page tells.
  static auto* const held = new os::LivenessPage(*std::move(page));
  held->SetBusy(true);
}

}  // namespace

Restarter::Restarter(EventLoop& loop, worker_runtime::session::Session& session, std::string job,
                     RankCommand command)
    : loop_(loop), session_(session), job_(std::move(job)), command_(std::move(command)) {}

os::ExitStatus Restarter::Run() {
  Ask();
  loop_.Run();
  return end_;
}

void Restarter::Call(std::function<void()> call) {
  if (thread_.joinable()) thread_.join();
  thread_ = StartSignalFreeThread(std::move(call));
}

void Restarter::Ask() {
  pb::JoinWorldRequest request;
  request.set_worked(std::exchange(has_worked_, false));
  absl::StatusOr<Fd> port = net::ReserveAnyPort(session_.standing().advertise_address);
  absl::StatusOr<int> number = port.ok() ? net::PortOf(port->get()) : port.status();
  if (!number.ok()) return OnAnswer(number.status());
  store_port_ = *std::move(port);
  // The port at which a worker's peers reach it. Here it is for the store: no peer connects
  // otherwise.
  request.set_port(static_cast<uint32_t>(*number));
  Call([this, request = std::move(request)] {
    Answer answer = session_.JoinNextWorld(request, kJoinTimeout);
    loop_.Post([this, answer = std::move(answer)]() mutable { OnAnswer(std::move(answer)); });
  });
}

void Restarter::OnAnswer(Answer answer) {
  if (is_ending_) return;
  if (!answer.ok()) {
    Complain(std::string(answer.status().message()));
    return End(Code(1));
  }
  auto* const world = std::get_if<WorkerWorld>(&*answer);
  if (world == nullptr) return End(Code(0));  // released
  if (absl::Status begun = Begin(std::move(*world)); !begun.ok()) {
    Complain(std::string(begun.message()));
    End(Code(1));
  }
}

absl::Status Restarter::Begin(WorkerWorld world) {
  world_ = std::move(world);
  is_leaving_ = is_broken_ = false;
  const Epoch epoch = world_->epoch;
  watch_ = session_.Watch(epoch, [this, epoch](EpochEvent event, const std::string& reason) {
    loop_.Post([this, epoch, event, reason] { OnChange(epoch, event, reason); });
  });
  ASSIGN_OR_RETURN(const std::vector<Peer> peers, world_->members->Get());
  RankInWorld rank{job_,           epoch.value(),        {},
                   world_->rank(), world_->root.address, world_->root.port};
  for (const Peer& peer : peers) rank.places.push_back(peer.place);
  if (rank.rank == 0) RETURN_IF_ERROR(net::ShareReservedPort(store_port_.get()));
  os::SpawnOptions options;
  options.file = command_.file;
  options.argv = command_.argv;
  options.environment.emplace();
  for (const auto& [name, value] : RankVariables(ReadEnvironment(), rank)) {
    options.environment->push_back(absl::StrCat(name, "=", value));
  }
  ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
  has_worked_ = true;
  process_.emplace(std::move(process));
  return loop_.Watch(process_->pidfd(), EPOLLIN, [this](uint32_t) { OnCommandExit(); });
}

void Restarter::OnChange(Epoch epoch, EpochEvent event, const std::string& reason) {
  if (!world_.has_value() || world_->epoch != epoch || is_ending_) return;
  // A rank whose command has ended well does not leave for a planned change: the others may end
  // well, too. If they don't, they leave, and the daemon breaks the world a little later.
  if (event == EpochEvent::kChanging && !process_.has_value()) return;
  is_leaving_ = true;
  if (event != EpochEvent::kChanging) is_broken_ = true;
  if (event == EpochEvent::kOver) {
    is_over_ = true;
    Complain(reason);
  }
  if (process_.has_value()) return EndCommand();
  if (is_over_) End(Code(1));  // otherwise the exchange ends
}

void Restarter::EndCommand() {
  if (kill_timer_.has_value()) return;
  process_->SignalGroup(SIGTERM);
  kill_timer_ = loop_.After(kGrace, [this] { process_->SignalGroup(SIGKILL); });
}

void Restarter::OnSignal(int signal) {
  is_ending_ = true;
  // The agent allows for the command's grace, and kills both when it is over.
  if (process_.has_value()) return process_->SignalGroup(signal);
  End({0, signal, false});
}

void Restarter::OnCommandExit() {
  const os::ExitStatus status = process_->PeekExit().value_or(os::ExitStatus());
  loop_.Forget(process_->pidfd());
  if (kill_timer_.has_value()) loop_.Cancel(*kill_timer_);
  kill_timer_.reset();
  // What it has left behind, while the group's number is still its own.
  process_->SignalGroup(SIGKILL);
  process_.reset();
  if (is_ending_) return End(status);
  if (is_over_) return End(Code(1));
  if (is_leaving_) return LeaveWorld();
  if (status.signal == 0 && status.exit_code == 0) return AwaitOthers();
  if (IsConsequence()) return LeaveWorld();
  End(status);
}

// Whether the world was broken before the command has failed. Then the command has only lost
// another rank.
bool Restarter::IsConsequence() {
  const absl::Status whole = session_.ReportProgress(world_->epoch, kQuestionTimeout);
  is_broken_ = absl::IsFailedPrecondition(whole) || absl::IsNotFound(whole);
  return is_broken_;
}

void Restarter::AwaitOthers() {
  std::shared_ptr<collectives::KeyExchange> keys = session_.NewKeyExchange(world_->epoch);
  Call([this, keys = std::move(keys)] {
    absl::Status done = keys->Gather(kDone, "", {0}, kTraining).status();
    loop_.Post([this, done = std::move(done)] { OnAllDone(done); });
  });
}

void Restarter::OnAllDone(const absl::Status& done) {
  if (is_ending_) return;
  if (!done.ok()) {
    is_broken_ = true;
    return LeaveWorld();
  }
  const absl::Status told = session_.ReportFinished(world_->epoch, kFinishTimeout);
  if (!told.ok()) Complain(std::string(told.message()));
  End(Code(told.ok() ? 0 : 1));
}

void Restarter::LeaveWorld() {
  watch_.reset();
  world_.reset();
  if (!is_broken_) return Ask();
  loop_.After(kSettle, [this] {
    if (!is_ending_) Ask();
  });
}

void Restarter::Complain(const std::string& text) const {
  fprintf(stderr, "horovodrun --elastic-restart: %s\n", text::OnOneLine(text).c_str());
}

void Restarter::End(os::ExitStatus status) {
  is_ending_ = true;
  end_ = status;
  loop_.Stop();
}

namespace {

// Ends this process as another one has ended. Without destructors: threads may be in calls.
[[noreturn]] void EndAs(const os::ExitStatus& status) {
  if (status.signal != 0) {
    os::ForbidCoreFiles();
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, status.signal);
    signal(status.signal, SIG_DFL);
    kill(getpid(), status.signal);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
  }
  _exit(status.signal != 0 ? 128 + status.signal : status.exit_code);
}

absl::StatusOr<os::ExitStatus> RunProgram(const std::vector<std::string>& argv, int signals) {
  ASSIGN_OR_RETURN(const settings::RuntimeEnv env,
                   settings::ParseRuntimeEnv(settings::ReadRuntimeVariables()));
  ASSIGN_OR_RETURN(
      worker_runtime::session::AgentAnswer answer,
      worker_runtime::session::FetchBootstrap(env.agent_socket, WorkerId(env.worker_id),
                                              env.worker_word, env.agent_timeout));
  HoldLiveness(std::move(answer.liveness_page));
  const std::shared_ptr<worker_runtime::session::Session> session =
      worker_runtime::session::OpenAgentSession(answer.bootstrap, env.agent_timeout);
  ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  Restarter restarter(*loop, *session, answer.bootstrap.job_id(),
                      {argv[0], {argv.begin() + 1, argv.end()}});
  RETURN_IF_ERROR(loop->Watch(signals, EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info;
    if (read(signals, &info, sizeof(info)) == sizeof(info))
      restarter.OnSignal(static_cast<int>(info.ssi_signo));
  }));
  EndAs(restarter.Run());
}

}  // namespace

void RunRestarterProgram(const std::vector<std::string>& argv) {
  prctl(PR_SET_NAME, kName);
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : kEndSignals) sigaddset(&ends, signal);
  // Before any thread is started.
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const Fd signals(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  const absl::StatusOr<os::ExitStatus> end = RunProgram(argv, signals.get());
  fprintf(stderr, "horovodrun --elastic-restart: %s\n",
          text::OnOneLine(end.status().message()).c_str());
  _exit(1);
}

}  // namespace hvd::agent::restarter
