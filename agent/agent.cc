#include "agent/agent.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/crypto.h"
#include "base/failpoint/failpoint.h"
#include "base/net/address.h"
#include "base/net/tcp_socket.h"
#include "base/os/signals.h"
#include "base/os/usable_cores.h"
#include "base/settings/runtime_settings.h"
#include "base/status_macros.h"
#include "base/text/shortened.h"
#include "base/text/utf8.h"
#include "base/version.h"
#include "rendezvous/security/credentials_message.h"
#include "rendezvous/security/job_credentials.h"

namespace hvd::agent {
namespace {

constexpr absl::Duration kRouteTime = absl::Seconds(10);
constexpr absl::Duration kRoutePause = absl::Milliseconds(250);
constexpr size_t kLongestCommand = 1000;  // bytes of it that the status shows

sigset_t AgentSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  os::AddUnlessIgnored(signals, SIGHUP);
  os::AddNotices(signals);
  return signals;
}

// Identifies this agent's process to the daemon, which distinguishes a reconnection from a
// restarted agent by it. Never 0.
uint64_t RandomIncarnation() {
  uint64_t incarnation = 0;
  while (incarnation == 0) {
    const std::string bytes = RandomBytes(sizeof(incarnation));
    memcpy(&incarnation, bytes.data(), sizeof(incarnation));
  }
  return incarnation;
}

}  // namespace

void BlockAgentSignals() {
  sigset_t signals = AgentSignals();
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGXFSZ);  // a file at its limit (ulimit -f) fails as one on a full disk
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Agent::Agent(EventLoop& loop, output::AgentOutput& output, OpenLink open_link,
             AgentSettings settings)
    : loop_(loop),
      output_(output),
      open_link_(std::move(open_link)),
      settings_(settings),
      drain_grace_(settings.drain_grace) {
  const sigset_t signals = AgentSignals();
  signals_.reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  output_.set_on_idle([this] { OnOutputIdle(); });
}

int Agent::Run() {
  absl::Status watched = loop_.Watch(signals_.get(), EPOLLIN, [this](uint32_t) { OnSignal(); });
  if (settings_.adoption != nullptr) {
    watched.Update(settings_.adoption->Watch([this] { OnWithdrawn(); }));
  }
  // Posted, since the loop forgets a Stop that came before it runs.
  if (!watched.ok()) loop_.Post([this, watched] { Refuse(std::string(watched.message())); });
  loop_.Run();
  // First the processes, then the workers' objects and the stream: nothing that the agent has
  // started outlives it, whatever ended the loop.
  KillWorkers();
  attachment_.reset();
  loop_.Forget(signals_.get());
  return exit_code_;
}

void Agent::Begin(const pb::AgentBootstrap& bootstrap) {
  bootstrap_ = bootstrap;
  absl::StatusOr<LaunchPlan> plan = settings_.adoption != nullptr
                                        ? MakeAdoptionPlan(bootstrap_)
                                        : MakeLaunchPlan(bootstrap_, ReadEnvironment());
  if (!plan.ok()) return Refuse(std::string(plan.status().message()));
  plan_ = *std::move(plan);
  const auto& variables = bootstrap_.command().environment();
  const absl::StatusOr<settings::RuntimeEnv> env =
      settings::ParseRuntimeEnv({variables.begin(), variables.end()});
  if (!env.ok()) return Refuse(absl::StrCat(plan_.host, ": ", env.status().message()));
  patience_ = env->agent_timeout;
  commit_copy_mbit_ = env->commit_copy_mbit;
  // Until start_timeout has passed, an unreachable daemon is not an error but not yet started.
  if (settings_.start_timeout > absl::ZeroDuration()) {
    daemon_may_come_ = true;
    loop_.After(settings_.start_timeout, [this] { daemon_may_come_ = false; });
  }
  if (bootstrap_.daemon_addresses_size() > 1) {
    const pb::Credentials& own = bootstrap_.credentials();
    absl::StatusOr<std::shared_ptr<const net::TlsContext>> tls =
        net::TlsContext::Create({own.ca_certificate(), own.certificate(), own.private_key(),
                                 rendezvous::security::kDaemonTlsName});
    if (!tls.ok()) {
      return Refuse(absl::StrCat(plan_.host, ": the job's credentials: ", tls.status().message()));
    }
    daemons_tls_ = *std::move(tls);
  }
  FindRoute();
}

void Agent::FindRoute() {
  const auto& addresses = bootstrap_.daemon_addresses();
  const absl::Duration patience =
      daemon_may_come_ ? std::min(settings_.start_timeout, kRouteTime) : kRouteTime;
  route_finder_.emplace(loop_, std::vector<std::string>(addresses.begin(), addresses.end()),
                        daemons_tls_, patience,
                        [this](absl::StatusOr<Route> route) { OnRoute(std::move(route)); });
}

void Agent::OnRoute(absl::StatusOr<Route> route) {
  if (!route.ok() && daemon_may_come_) {
    loop_.After(kRoutePause, [this] { FindRoute(); });
    return;
  }
  if (!route.ok()) {
    const std::string daemon =
        settings_.alone ? "the rendezvous daemon" : "horovodrun's rendezvous daemon";
    return Refuse(absl::StrCat(plan_.host, ": can't reach ", daemon, " from here (",
                               route.status().message(), "); check ",
                               settings_.alone ? "that it runs, the address, and firewalls"
                                               : "firewalls, or choose a network with "
                                                 "--network-interfaces"));
  }
  route_ = *std::move(route);
  daemon_target_ = TargetOf(route_);
  const absl::Status attached = Attach(route_);
  if (!attached.ok()) Refuse(absl::StrCat(plan_.host, ": ", attached.message()));
}

// Of several daemons the one that was found comes first: at another one's address there may be a
// program that accepts connections and keeps each waiting.
std::string Agent::TargetOf(const Route& route) const {
  if (settings_.daemon_name.empty()) return route.daemon_address;
  std::vector<std::string> targets = absl::StrSplit(settings_.daemon_name, ',');
  const auto found = std::find(targets.begin(), targets.end(), route.daemon_address);
  if (found != targets.end()) std::rotate(targets.begin(), found, found + 1);
  return absl::StrJoin(targets, ",");
}

absl::Status Agent::Attach(const Route& route) {
  ASSIGN_OR_RETURN(const std::vector<net::InterfaceAddress> interfaces, net::ListInterfaces());
  if (bootstrap_.networks_size() > 0) {
    ASSIGN_OR_RETURN(route_.own_address, ChooseOwnAddress(interfaces));
  }
  // The socket exists before the first worker can be started: workers fetch their resources from
  // it, and its name is part of their environment.
  ASSIGN_OR_RETURN(socket_,
                   rendezvous::bootstrap::BootstrapSocket::Create(
                       loop_, geteuid(), [this](const pb::WorkerHello& hello, pid_t asker) {
                         return AnswerWorker(hello, asker);
                       }));
  workers_.emplace(loop_, output_, plan_,
                   WorkerPlace{route.daemon_address, route_.own_address, socket_->name(),
                               /*elastic=*/false, net::InterfaceOf(route_.own_address, interfaces),
                               /*word=*/"", os::UsableCores(),
                               os::HasShareOfCores() ? static_cast<int>(bootstrap_.slots()) : 0},
                   settings_.check_interval, settings_.adoption,
                   [this](pb::AgentMessage message) { OnWorkerReport(std::move(message)); });
  workers_->set_on_empty([this] { OnWorkersEmpty(); });
  RETURN_IF_ERROR(FAILPOINT_STATUS("agent.attach.ready"));

  // `ready` goes out before the attachment is opened, so that the launcher learns of it before the
  // daemon can start workers whose output would follow.
  pb::AgentFrame ready;
  ready.mutable_ready()->set_version(kVersion);
  ready.mutable_ready()->set_warning(text::ToUtf8(plan_.warning));
  output_.Send(ready);
  FAILPOINT("agent.attach.announced");
  attachment_ = OpenAttachment();
  return absl::OkStatus();
}

// The user's choice of networks replaces the address of the route: the daemon may be reached
// through a slow one.
absl::StatusOr<std::string> Agent::ChooseOwnAddress(
    const std::vector<net::InterfaceAddress>& interfaces) const {
  const auto& networks = bootstrap_.networks();
  if (networks.empty()) return net::SourceAddressTo(route_.daemon_address);
  return net::ChooseAddress({networks.begin(), networks.end()}, interfaces);
}

// A host that was cut off may come back with another address. Without a route, the next attempt
// looks again.
void Agent::FollowOwnAddress() {
  const absl::StatusOr<std::vector<net::InterfaceAddress>> interfaces = net::ListInterfaces();
  if (!interfaces.ok()) return;
  const absl::StatusOr<std::string> address = ChooseOwnAddress(*interfaces);
  if (!address.ok() || *address == route_.own_address) return;
  Say(absl::StrCat("this host's address is ", *address, " now, and was ", route_.own_address));
  route_.own_address = *address;
  workers_->set_own_address(*address, net::InterfaceOf(*address, *interfaces));
  // The first worker uses the port that was announced before.
  if (workers_->log().Known().empty()) ReserveStorePort();
  OpenCommitSource();
}

std::unique_ptr<Attachment> Agent::OpenAttachment() {
  pb::AgentHello hello;
  hello.set_version(kVersion);
  hello.set_host(bootstrap_.host());
  hello.set_slots(bootstrap_.slots());
  hello.set_machine(bootstrap_.machine());
  hello.set_incarnation(RandomIncarnation());
  hello.set_command(
      text::Shortened(absl::StrJoin(bootstrap_.command().argv(), " "), kLongestCommand));
  ReserveStorePort();
  OpenCommitSource();
  hello.set_store_address(store_address_);
  hello.set_commit_address(CommitAddress());
  const rendezvous::security::PeerCredentials credentials =
      rendezvous::security::FromMessage(bootstrap_.credentials());
  return std::make_unique<Attachment>(
      loop_,
      [this, credentials](const pb::AgentHello& said,
                          rendezvous::client::AgentLink::Callbacks callbacks) {
        return open_link_(daemon_target_, credentials, said, std::move(callbacks),
                          PatienceWithDaemon());
      },
      hello,
      // Any peer may end a connection before it has proved itself, and a crowd of strangers does.
      settings_.start_timeout > absl::ZeroDuration() ? settings_.start_timeout : kRouteTime,
      Attachment::Callbacks{[this](const pb::AgentCommand& command) { OnCommand(command); },
                            [this] { return Remember(); },
                            [this](const absl::Status& status) { OnDetached(status); },
                            [this](const absl::Status& status) { OnAttachmentClosed(status); }});
}

rendezvous::transport::Patience Agent::PatienceWithDaemon() const {
  const absl::Duration reattach =
      welcome_.has_value() ? absl::Milliseconds(welcome_->reattach_ms()) : absl::ZeroDuration();
  return rendezvous::transport::PatienceFor(patience_, reattach);
}

// Best effort: without a port the workers run without MASTER_ADDR, which few jobs need.
void Agent::ReserveStorePort() {
  store_address_.clear();
  store_port_.reset();
  absl::StatusOr<Fd> reserved = net::ReserveAnyPort(route_.own_address);
  if (!reserved.ok()) return;
  const absl::StatusOr<int> port = net::PortOf(reserved->get());
  if (!port.ok()) return;
  store_port_ = *std::move(reserved);
  store_address_ = net::JoinHostPort(route_.own_address, absl::StrCat(*port));
}

Attachment::Memory Agent::Remember() {
  // The daemon may have missed messages, or may be a restarted one. So every stream after the first
  // begins with all state that it needs: the newest commit, known workers, their events, a pending
  // drain.
  if (!workers_.has_value()) return {};
  FollowOwnAddress();
  told_commit_ = NewestCommit();
  Attachment::Memory memory{told_commit_, store_address_, CommitAddress(), workers_->log().Known(),
                            workers_->log().Messages()};
  if (draining()) memory.messages.push_back(DrainMessage());
  return memory;
}

rendezvous::bootstrap::BootstrapSocket::Response Agent::AnswerWorker(const pb::WorkerHello& hello,
                                                                     pid_t asker) {
  rendezvous::bootstrap::BootstrapSocket::Response response;
  pb::WorkerBootstrap& answer = response.bootstrap;
  // Before the welcome this agent does not know the job; an earlier agent's worker may ask then.
  const absl::Status admitted = welcome_.has_value() && workers_.has_value()
                                    ? workers_->Admit(hello, asker)
                                    : absl::PermissionDeniedError("this host runs no worker yet");
  if (!admitted.ok()) {
    answer.set_error(std::string(admitted.message()));
    return response;
  }
  if (hello.has_output_rank()) {
    workers_->SetOutputRank(hello.worker_id(), hello.output_rank());
    return response;
  }
  if (hello.newest_commit()) {
    FAILPOINT("agent.newest_commit.asked");
    if (held_.has_value()) response.kept = held_->newest().arena;
    return response;
  }
  answer.set_job_id(welcome_->job_id());
  answer.set_worker_id(hello.worker_id());
  answer.set_host(bootstrap_.host());
  *answer.mutable_credentials() = bootstrap_.credentials();
  answer.set_daemon_address(daemon_target_);
  answer.set_advertise_address(route_.own_address);
  answer.set_elastic(welcome_->elastic());
  answer.set_reattach_ms(welcome_->reattach_ms());
  answer.set_encrypt_data(welcome_->encrypt_data());
  if (hello.credentials_only()) return response;
  HandOver(hello.worker_id(), asker, response);
  FAILPOINT("agent.worker.equipped");
  return response;
}

// Adds the worker's resources to the response. All are optional: one that is not available is left
// out, and the worker runs without it.
void Agent::HandOver(uint64_t worker_id, pid_t asker,
                     rendezvous::bootstrap::BootstrapSocket::Response& response) {
  if (workers_->Follow(worker_id, asker)) {
    // Without the pipe a stack sample shows only the state of the process in /proc.
    const absl::StatusOr<int> stack_pipe = workers_->OfferStackPipe(worker_id);
    if (stack_pipe.ok()) {
      response.stack_pipe = *stack_pipe;
      response.bootstrap.set_stack_signal(inspection::StackProbe::Signal());
    }
    // Without a page the process's death is detected later, by the end of the process itself, and
    // it is not detected that it executes another program.
    const absl::StatusOr<int> page = workers_->WatchProcess(worker_id);
    if (page.ok()) response.page = *page;
    if (bootstrap_.is_rehearsal()) {
      const absl::StatusOr<int> faults = workers_->OfferFaultPage(worker_id);
      if (faults.ok()) response.faults = *faults;
    }
  }
  if (!welcome_->elastic()) return;
  // Without an arena this worker's commits are lost with it; a rollback then uses other workers'
  // commits.
  const absl::StatusOr<int> arena = workers_->CommitArena(worker_id);
  if (!arena.ok()) return;
  response.arena = *arena;
  held_->Add(*arena);
  if (commit_source_ != nullptr) commit_source_->Offer(*arena);
}

void Agent::OnCommand(const pb::AgentCommand& command) {
  if (!workers_.has_value() || leaving_) return;
  switch (command.command_case()) {
    case pb::AgentCommand::kWelcome:
      return OnWelcome(command.welcome());
    case pb::AgentCommand::kStart:
      // No worker is started once the job ends here.
      if (phase_ != Phase::kWorking) return;
      FAILPOINT("agent.worker.ordered");
      // Not before: another user of this machine could take the port, too.
      if (command.start().placement().rank() == 0 && store_port_.valid()) {
        net::ShareReservedPort(store_port_.get()).IgnoreError();
      }
      workers_->Start(command.start());
      return;
    case pb::AgentCommand::kStop:
      workers_->Stop({command.stop().worker_ids().begin(), command.stop().worker_ids().end()},
                     absl::Milliseconds(command.stop().grace_ms()));
      return;
    case pb::AgentCommand::kSample:
      return workers_->Sample(command.sample().worker_id());
    case pb::AgentCommand::kSignal:
      return PassOn(command.signal().number());
    case pb::AgentCommand::kFault:
      return OnFault(command.fault());
    case pb::AgentCommand::kKeep:
      return OnKeep(command.keep());
    case pb::AgentCommand::kHold:
      return Say(command.hold().reason());
    case pb::AgentCommand::kEnd:
      return OnEndJob(command.end());
    case pb::AgentCommand::COMMAND_NOT_SET:
      return;
  }
}

void Agent::OnWelcome(const pb::AgentWelcome& welcome) {
  if (welcome_.has_value()) Say("the rendezvous daemon is there again");
  FAILPOINT("agent.attach.welcomed");
  welcome_ = welcome;
  workers_->set_job_id(welcome.job_id());
  if (!welcome.elastic()) return;
  workers_->MakeElastic();
  if (!held_.has_value()) held_.emplace(welcome.job_id());
  BeginCopies(welcome.job_id());
}

}  // namespace hvd::agent
