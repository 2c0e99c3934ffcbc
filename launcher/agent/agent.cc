#include "launcher/agent/agent.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process_tree.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "launcher/agent/address.h"
#include "launcher/agent/stderr_tail.h"
#include "launcher/spawn/agent_protocol.h"

namespace hvd {
namespace {

constexpr absl::Duration kRouteTime = absl::Seconds(10);
// For the daemon to close its side, and for the launcher to take the rest of the output.
constexpr absl::Duration kFarewellTime = absl::Seconds(5);

sigset_t AgentSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

uint64_t RandomIncarnation() {
  uint64_t incarnation = 0;
  while (incarnation == 0) {
    const std::string bytes = RandomBytes(sizeof(incarnation));
    memcpy(&incarnation, bytes.data(), sizeof(incarnation));
  }
  return incarnation;
}

PeerCredentials FromProto(const pb::Credentials& credentials) {
  return {credentials.token(), credentials.ca_certificate(), credentials.certificate(),
          credentials.private_key()};
}

absl::Duration Grace(uint32_t milliseconds) { return absl::Milliseconds(milliseconds); }

}  // namespace

void BlockAgentSignals() {
  sigset_t signals = AgentSignals();
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Agent::Agent(EventLoop& loop, int input, int output, OpenLink open_link)
    : loop_(loop),
      open_link_(std::move(open_link)),
      writer_(loop, output),
      input_(
          loop, input,
          {[this](const pb::AgentBootstrap& bootstrap) { OnBootstrap(bootstrap); },
           [this] { Quit(link_done_ ? 0 : 1); },
           [this](const absl::Status& status) {
             Refuse(absl::StrCat(kAgentProgram, " ", kVersion, " can't read what horovodrun sent (",
                                 status.message(), "); are the versions the same?"));
           }}) {
  const sigset_t signals = AgentSignals();
  signals_.reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  writer_.set_on_idle([this] { OnOutputIdle(); });
}

int Agent::Run() {
  const absl::Status watched =
      loop_.Watch(signals_.get(), EPOLLIN, [this](uint32_t) { OnSignal(); });
  writer_.SendRaw(kFrameMagic);
  if (!watched.ok()) Refuse(std::string(watched.message()));
  loop_.Run();
  KillWorkers();
  link_.reset();
  loop_.Forget(signals_.get());
  return exit_code_;
}

void Agent::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) return Quit(128 + static_cast<int>(info.ssi_signo));
  }
  if (workers_.has_value()) workers_->ReapOrphans();
}

void Agent::OnBootstrap(const pb::AgentBootstrap& bootstrap) {
  bootstrap_ = bootstrap;
  absl::StatusOr<LaunchPlan> plan = MakeLaunchPlan(bootstrap_);
  if (!plan.ok()) return Refuse(std::string(plan.status().message()));
  plan_ = *std::move(plan);
  const auto& addresses = bootstrap_.daemon_addresses();
  route_finder_.emplace(loop_, std::vector<std::string>(addresses.begin(), addresses.end()),
                        kRouteTime,
                        [this](absl::StatusOr<Route> route) { OnRoute(std::move(route)); });
}

void Agent::OnRoute(absl::StatusOr<Route> route) {
  if (!route.ok()) {
    return Refuse(
        absl::StrCat(plan_.host, ": can't reach horovodrun's rendezvous daemon from here (",
                     route.status().message(),
                     "); check firewalls, or choose a network with --network-interfaces"));
  }
  route_ = *std::move(route);
  const absl::Status attached = Attach(route_);
  if (!attached.ok()) Refuse(absl::StrCat(plan_.host, ": ", attached.message()));
}

absl::Status Agent::Attach(const Route& route) {
  if (bootstrap_.networks_size() > 0) {
    const auto& networks = bootstrap_.networks();
    ASSIGN_OR_RETURN(route_.own_address,
                     ChooseAddress({networks.begin(), networks.end()}, OwnAddresses()));
  }
  ASSIGN_OR_RETURN(socket_, BootstrapSocket::Create(loop_, geteuid(), [this](uint64_t worker_id) {
                     return AnswerWorker(worker_id);
                   }));
  workers_.emplace(loop_, writer_, plan_, WorkerPlace{route.daemon_address, socket_->name()},
                   [this](pb::AgentMessage message) { link_->Send(std::move(message)); });
  workers_->set_on_empty([this] { OnWorkersEmpty(); });

  pb::AgentFrame ready;
  ready.mutable_ready()->set_version(kVersion);
  ready.mutable_ready()->set_warning(plan_.warning);
  writer_.Send(ready);

  pb::AgentHello hello;
  hello.set_version(kVersion);
  hello.set_host(bootstrap_.host());
  hello.set_slots(bootstrap_.slots());
  hello.set_incarnation(RandomIncarnation());
  link_ = open_link_(
      route.daemon_address, FromProto(bootstrap_.credentials()), hello,
      {[this](const pb::AgentCommand& command) {
         loop_.Post([this, command] { OnCommand(command); });
       },
       [this](absl::Status status) { loop_.Post([this, status] { OnLinkClosed(status); }); }});
  return absl::OkStatus();
}

pb::WorkerBootstrap Agent::AnswerWorker(uint64_t worker_id) const {
  pb::WorkerBootstrap answer;
  if (!workers_.has_value() || !workers_->Has(worker_id)) {
    answer.set_error(absl::StrCat("this host runs no worker ", worker_id));
    return answer;
  }
  answer.set_job_id(bootstrap_.job_id());
  answer.set_worker_id(worker_id);
  answer.set_host(bootstrap_.host());
  *answer.mutable_credentials() = bootstrap_.credentials();
  answer.set_daemon_address(route_.daemon_address);
  answer.set_advertise_address(route_.own_address);
  return answer;
}

void Agent::OnCommand(const pb::AgentCommand& command) {
  if (!workers_.has_value()) return;
  switch (command.command_case()) {
    case pb::AgentCommand::kWelcome:
      welcomed_ = true;
      return;
    case pb::AgentCommand::kStart:
      if (!ending_) workers_->Start(command.start());
      return;
    case pb::AgentCommand::kStop:
      workers_->Stop({command.stop().worker_ids().begin(), command.stop().worker_ids().end()},
                     Grace(command.stop().grace_ms()));
      return;
    case pb::AgentCommand::kEnd:
      ending_ = true;
      workers_->StopAll(Grace(command.end().grace_ms()));
      if (workers_->empty()) OnWorkersEmpty();
      return;
    case pb::AgentCommand::COMMAND_NOT_SET:
      return;
  }
}

void Agent::OnWorkersEmpty() {
  if (!ending_ || std::exchange(link_done_, true)) return;
  link_->Finish();
  loop_.After(kFarewellTime, [this] { QuitWhenFlushed(0); });
}

void Agent::OnLinkClosed(const absl::Status& status) {
  if (link_done_) return QuitWhenFlushed(0);
  KillWorkers();
  const std::string reason = ToUtf8({status.message().data(), status.message().size()});
  if (!welcomed_) {
    return Refuse(
        absl::StrCat(plan_.host, ": the rendezvous daemon did not take this host: ", reason));
  }
  if (!status.ok()) {
    fprintf(stderr, "%s: lost the rendezvous daemon: %s\n", plan_.host.c_str(), reason.c_str());
  }
  QuitWhenFlushed(status.ok() ? 0 : 1);
}

void Agent::OnOutputIdle() {
  if (workers_.has_value()) workers_->ResumeOutput();
  if (quit_when_flushed_) Quit(exit_code_);
}

void Agent::Refuse(const std::string& message) {
  pb::AgentFrame frame;
  frame.mutable_refusal()->set_message(ToUtf8(message));
  writer_.Send(frame);
  QuitWhenFlushed(kAgentRefusedExitCode);
}

void Agent::QuitWhenFlushed(int exit_code) {
  if (writer_.idle()) return Quit(exit_code);
  if (std::exchange(quit_when_flushed_, true)) return;
  exit_code_ = exit_code;
  loop_.After(kFarewellTime, [this] { Quit(exit_code_); });
}

void Agent::Quit(int exit_code) {
  exit_code_ = exit_code;
  loop_.Stop();
}

void Agent::KillWorkers() {
  KillDescendants();
  workers_.reset();
}

}  // namespace hvd
