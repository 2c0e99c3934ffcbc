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
                     RankCommand command, TellRank tell_rank)
    : loop_(loop),
      session_(session),
      job_(std::move(job)),
      command_(std::move(command)),
      tell_rank_(std::move(tell_rank)) {}

os::ExitStatus Restarter::Run() {
  Ask(/*worked=*/false);
  if (state_ != State::kEnded) loop_.Run();
  return end_;
}

void Restarter::Call(std::function<void()> call) {
  if (thread_.joinable()) thread_.join();
  thread_ = StartSignalFreeThread(std::move(call));
}

void Restarter::Ask(bool worked) {
  pb::JoinWorldRequest request;
  request.set_worked(worked);
  request.set_starts_anew(true);
  absl::StatusOr<Fd> port = net::ReserveAnyPort(session_.standing().advertise_address);
  absl::StatusOr<int> number = port.ok() ? net::PortOf(port->get()) : port.status();
  if (!number.ok()) return OnAnswer(number.status());
  store_port_ = *std::move(port);
  // The port at which a worker's peers reach it. Here it is for the store: no peer connects
  // otherwise.
  request.set_port(static_cast<uint32_t>(*number));
  Call([this, request = std::move(request)] {
    Answer answer = JoinNextWorld(request);
    loop_.Post([this, answer = std::move(answer)]() mutable { OnAnswer(std::move(answer)); });
  });
}

Restarter::Answer Restarter::JoinNextWorld(const pb::JoinWorldRequest& request) {
  ASSIGN_OR_RETURN(JoinAnswer answer, session_.JoinNextWorld(request, kJoinTimeout));
  // The command of the earlier world has ended, that of this one has not begun.
  const auto* const world = std::get_if<WorkerWorld>(&answer);
  if (world != nullptr) RETURN_IF_ERROR(tell_rank_(world->rank()));
  return answer;
}

void Restarter::OnAnswer(Answer answer) {
  if (state_ != State::kAsking) return;
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
  state_ = State::kRunning;
  process_.emplace(std::move(process));
  return loop_.Watch(process_->pidfd(), EPOLLIN, [this](uint32_t) { OnCommandExit(); });
}

void Restarter::OnChange(Epoch epoch, EpochEvent event, const std::string& reason) {
  if (!world_.has_value() || world_->epoch != epoch) return;
  const bool runs =
      state_ == State::kRunning || state_ == State::kChanging || state_ == State::kBroken;
  // Otherwise the worker ends already.
  if (!runs && state_ != State::kAwaiting) return;
  if (event == EpochEvent::kOver) {
    Complain(reason);
    if (!runs) return End(Code(1));
    state_ = State::kOver;
    return EndCommand();
  }
  // A rank whose command has ended well does not leave for a planned change: the others may end
  // well, too. If they don't, they leave, and the daemon breaks the world a little later. Then the
  // exchange ends.
  if (!runs) return;
  if (event == EpochEvent::kBroken) {
    state_ = State::kBroken;
  } else if (state_ == State::kRunning) {
    state_ = State::kChanging;
  }
  EndCommand();
}

void Restarter::EndCommand() {
  if (kill_timer_.has_value()) return;
  process_->SignalGroup(SIGTERM);
  kill_timer_ = loop_.After(kGrace, [this] { process_->SignalGroup(SIGKILL); });
}

void Restarter::OnSignal(int signal) {
  if (!process_.has_value()) return End({0, signal, false});
  state_ = State::kSignalled;
  // The agent allows for the command's grace, and kills both when it is over.
  process_->SignalGroup(signal);
}

void Restarter::OnCommandExit() {
  const os::ExitStatus status = process_->PeekExit().value_or(os::ExitStatus());
  loop_.Forget(process_->pidfd());
  if (kill_timer_.has_value()) loop_.Cancel(*kill_timer_);
  kill_timer_.reset();
  // What it has left behind, while the group's number is still its own.
  process_->SignalGroup(SIGKILL);
  process_.reset();
  OnCommandEnd(status);
}

void Restarter::OnCommandEnd(const os::ExitStatus& status) {
  switch (state_) {
    case State::kRunning:
      if (status.signal == 0 && status.exit_code == 0) return AwaitOthers();
      return IsConsequence() ? LeaveWorld(kSettle) : End(status);
    case State::kChanging:
      return LeaveWorld(absl::ZeroDuration());
    case State::kBroken:
      return LeaveWorld(kSettle);
    case State::kOver:
      return End(Code(1));
    case State::kSignalled:
      return End(status);
    case State::kAsking:
    case State::kAwaiting:
    case State::kEnded:
      return;  // no command runs
  }
}

// Whether the world was broken before the command has failed, although the watch has not said so
// yet. Then the command has only lost another rank.
bool Restarter::IsConsequence() {
  const absl::Status whole = session_.ReportProgress(world_->epoch, kQuestionTimeout);
  return absl::IsFailedPrecondition(whole) || absl::IsNotFound(whole);
}

void Restarter::AwaitOthers() {
  state_ = State::kAwaiting;
  std::shared_ptr<collectives::KeyExchange> keys = session_.NewKeyExchange(world_->epoch);
  Call([this, keys = std::move(keys)] {
    absl::Status done = keys->Gather(kDone, "", {0}, kTraining).status();
    loop_.Post([this, done = std::move(done)] { OnAllDone(done); });
  });
}

void Restarter::OnAllDone(const absl::Status& done) {
  if (state_ != State::kAwaiting) return;
  if (!done.ok()) return LeaveWorld(kSettle);
  const absl::Status told = session_.ReportFinished(world_->epoch, kFinishTimeout);
  if (!told.ok()) Complain(std::string(told.message()));
  End(Code(told.ok() ? 0 : 1));
}

void Restarter::LeaveWorld(absl::Duration pause) {
  watch_.reset();
  world_.reset();
  state_ = State::kAsking;
  if (pause <= absl::ZeroDuration()) return Ask(/*worked=*/true);
  loop_.After(pause, [this] {
    if (state_ == State::kAsking) Ask(/*worked=*/true);
  });
}

void Restarter::Complain(const std::string& text) const {
  fprintf(stderr, "horovodrun --elastic-restart: %s\n", text::OnOneLine(text).c_str());
}

void Restarter::End(os::ExitStatus status) {
  state_ = State::kEnded;
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
  // horovodrun refuses it before anything starts, but an agent that joins learns it only now.
  if (answer.bootstrap.encrypt_data()) {
    return absl::FailedPreconditionError(
        "the job encrypts (--encrypt-data), and nothing would encrypt what the script sends: start "
        "the daemon without --encrypt-data, or the command without --elastic-restart");
  }
  HoldLiveness(std::move(answer.liveness_page));
  const std::shared_ptr<worker_runtime::session::Session> session =
      worker_runtime::session::OpenAgentSession(answer.bootstrap, env.agent_timeout);
  ASSIGN_OR_RETURN(const std::unique_ptr<EventLoop> loop, EventLoop::Create());
  Restarter restarter(*loop, *session, answer.bootstrap.job_id(),
                      {argv[0], {argv.begin() + 1, argv.end()}}, [&env](int rank) {
                        return worker_runtime::session::SetOutputRank(
                            env.agent_socket, WorkerId(env.worker_id), env.worker_word, rank,
                            env.agent_timeout);
                      });
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
