#include "rendezvous/server/agent_service.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/address.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/text/shortened.h"
#include "base/text/utf8.h"
#include "base/version.h"
#include "rendezvous/security/peer_host.h"
#include "rendezvous/server/agent_stream.h"
#include "rendezvous/transport/message_time.h"
#include "rendezvous/transport/placement_message.h"

namespace hvd::rendezvous::server {
namespace {

// Far more than any host has. Bounds the work that one hello can cause.
constexpr uint32_t kMostSlots = 1 << 16;
constexpr int32_t kMostSignals = 64;

// An address at which another host finds a listener.
absl::Status CheckReachable(const std::string& address) {
  RETURN_IF_ERROR(net::ParseSocketAddress(address).status());
  if (net::SplitHostPort(address).port != "0") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("nobody can listen at port 0: ", address));
}

absl::Status CheckHello(const pb::AgentHello& hello) {
  if (hello.host().empty()) return absl::InvalidArgumentError("the agent names no host");
  // Names appear in line-based logs and output, so they must not contain control characters.
  RETURN_IF_ERROR(text::CheckName("the name of the agent's host", hello.host()));
  RETURN_IF_ERROR(text::CheckName("the machine of the agent", hello.machine()));
  if (hello.slots() == 0 || hello.slots() > kMostSlots) {
    return absl::InvalidArgumentError(absl::StrCat("the agent of ", hello.host(), " offers ",
                                                   hello.slots(), " slots; from 1 to ", kMostSlots,
                                                   " are possible"));
  }
  // Zero is the value of a field that was not sent. All such agents would count as one incarnation,
  // and TakePlace would let each replace the other.
  if (hello.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the agent of ", hello.host(), " has no incarnation"));
  }
  for (const std::string& address : {hello.store_address(), hello.commit_address()}) {
    if (!address.empty()) RETURN_IF_ERROR(CheckReachable(address));
  }
  if (hello.version() != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("horovod-agent on ", hello.host(),
                                                      " has version ", hello.version(),
                                                      ", the daemon has ", kVersion));
  }
  return absl::OkStatus();
}

// Errors:
//   - InvalidArgument: a number can't be what it stands for; names it.
absl::Status CheckNumbers(const pb::AgentMessage& message) {
  const int64_t pid = message.started().pid();
  if (pid < 0 || pid > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", message.started().worker_id(), " can't have the pid ", pid));
  }
  const int32_t signal = message.exited().signal();
  if (signal < 0 || signal > kMostSignals) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", message.exited().worker_id(),
                                                   " can't have ended by signal ", signal));
  }
  return absl::OkStatus();
}

membership::WorkerExited ToEvent(const pb::WorkerExited& exited) {
  membership::WorkerExited event;
  event.worker = WorkerId(exited.worker_id());
  event.exit_code = exited.exit_code();
  event.signal = exited.signal();
  event.core_dumped = exited.core_dumped();
  event.out_of_memory = exited.out_of_memory();
  event.stderr_tail.assign(exited.stderr_tail().begin(), exited.stderr_tail().end());
  event.start_error = exited.start_error();
  event.killed_for = exited.killed_for();
  event.unknown_end = exited.unknown_end();
  return event;
}

membership::WorkerSampled ToEvent(const pb::WorkerSampled& sampled) {
  return {WorkerId(sampled.worker_id()),
          sampled.doing(),
          {sampled.stack().begin(), sampled.stack().end()}};
}

// The worker that the message is about; nullopt if it is about the host.
std::optional<WorkerId> WorkerOf(const pb::AgentMessage& message) {
  switch (message.message_case()) {
    case pb::AgentMessage::kStarted:
      return WorkerId(message.started().worker_id());
    case pb::AgentMessage::kExited:
      return WorkerId(message.exited().worker_id());
    case pb::AgentMessage::kDying:
      return WorkerId(message.dying().worker_id());
    case pb::AgentMessage::kSampled:
      return WorkerId(message.sampled().worker_id());
    case pb::AgentMessage::kHello:
    case pb::AgentMessage::kDraining:
    case pb::AgentMessage::kKept:
    case pb::AgentMessage::kLeft:
    case pb::AgentMessage::kLeaving:
    case pb::AgentMessage::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

AgentService::AgentService(AgentServiceOptions options) : options_(std::move(options)) {}

grpc::ServerBidiReactor<pb::AgentMessage, pb::AgentCommand>* AgentService::Attach(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<AgentStream>(*this, security::PeerHost(*context->auth_context()));
  absl::Status closed;
  {
    absl::MutexLock lock(&mu_);
    // The insertion and the check are one step, so that no stream escapes Close: either Close finds
    // it in streams_, or closed_ is already set here.
    streams_.insert(stream);
    closed = closed_;
  }
  stream->Start();
  if (!closed.ok()) stream->Close(closed, AgentStream::Queued::kDrop);
  return stream.get();  // gRPC uses it until OnDone; streams_ and self_ keep it alive
}

absl::Status AgentService::Welcome(const pb::AgentHello& hello, const StreamPtr& stream) {
  RETURN_IF_ERROR(options_.check_room());
  if (absl::Status status = CheckHello(hello); !status.ok()) return status;
  if (absl::Status status = security::CheckPeerHost(stream->peer_host(), hello.host());
      !status.ok()) {
    return status;
  }
  StreamPtr replaced;
  if (absl::Status status = TakePlace(hello, stream, replaced); !status.ok()) return status;
  if (replaced != nullptr) {
    // Its queued commands are dropped without loss: HostJoined, below, says which workers the agent
    // has, and the machine issues what is still needed again.
    replaced->Close(absl::AbortedError("the agent has attached again"), AgentStream::Queued::kDrop);
  }
  pb::AgentCommand command;
  *command.mutable_welcome() = options_.welcome;
  // Queued before the machine knows of the agent, so no command of a first attachment precedes the
  // welcome.
  stream->Send(std::move(command));
  membership::HostJoined joined;
  joined.host = {hello.host(), static_cast<int>(hello.slots()), hello.machine()};
  joined.agent = Incarnation(hello.incarnation());
  joined.store_address = hello.store_address();
  joined.commit_address = hello.commit_address();
  joined.commit = hello.commit();
  for (const uint64_t worker : hello.known_workers()) {
    joined.known_workers.push_back(WorkerId(worker));
  }
  options_.post(std::move(joined));
  return absl::OkStatus();
}

absl::Status AgentService::TakePlace(const pb::AgentHello& hello, const StreamPtr& stream,
                                     StreamPtr& replaced) {
  absl::MutexLock lock(&mu_);
  if (!closed_.ok()) return closed_;
  if (job_over_) return absl::FailedPreconditionError("the job is over");
  const Incarnation agent(hello.incarnation());
  const auto [place, free] = attached_.insert({hello.host(), {agent, stream, ""}});
  if (free && !hello.command().empty())
    command_ = text::OnOneLine(text::ToUtf8(text::Shortened(hello.command())));
  if (free) return absl::OkStatus();
  // Which of two agents is the living one can't be told here. If the first one is dead, its stream
  // ends within the time limits of the connection, and the place is free.
  if (place->second.agent != agent) {
    return absl::AlreadyExistsError(
        absl::StrCat("another agent has attached as host ", hello.host()));
  }
  // The same agent: its old connection broke, but the daemon has not noticed that yet.
  replaced = std::exchange(place->second.stream, stream);
  return absl::OkStatus();
}

absl::Status AgentService::Received(const AgentStream& stream, const std::string& host,
                                    const pb::AgentMessage& message) {
  // An agent that sends more than the machine can handle would take all memory.
  RETURN_IF_ERROR(options_.check_room());
  RETURN_IF_ERROR(CheckNumbers(message));
  {
    absl::MutexLock lock(&mu_);
    const auto found = attached_.find(host);
    if (found == attached_.end() || found->second.stream.get() != &stream) return absl::OkStatus();
    if (!MaySpeakFor(host, message)) return absl::OkStatus();
    if (message.has_leaving()) found->second.leaves_for = message.leaving().reason();
  }
  Post(host, message);
  return absl::OkStatus();
}

void AgentService::Post(const std::string& host, const pb::AgentMessage& message) {
  switch (message.message_case()) {
    case pb::AgentMessage::kStarted:
      return options_.post(membership::WorkerStarted{WorkerId(message.started().worker_id()),
                                                     message.started().pid()});
    case pb::AgentMessage::kExited:
      return options_.post(ToEvent(message.exited()));
    case pb::AgentMessage::kDying:
      return options_.post(membership::WorkerDying{WorkerId(message.dying().worker_id())});
    case pb::AgentMessage::kDraining:
      return options_.post(
          membership::HostDraining{host, absl::Milliseconds(message.draining().grace_ms()),
                                   message.draining().reason(), message.draining().at_once()});
    case pb::AgentMessage::kSampled:
      return options_.post(ToEvent(message.sampled()));
    case pb::AgentMessage::kKept:
      return options_.post(
          membership::CommitKept{host, message.kept().commit(), message.kept().failure()});
    case pb::AgentMessage::kLeft:
      return options_.post(membership::CommitLeft{host, message.left().commit()});
    case pb::AgentMessage::kLeaving:  // the end of the stream follows
    case pb::AgentMessage::kHello:
    case pb::AgentMessage::MESSAGE_NOT_SET:
      return;  // no event
  }
}

bool AgentService::MaySpeakFor(const std::string& host, const pb::AgentMessage& message) {
  const std::optional<WorkerId> worker = WorkerOf(message);
  if (!worker.has_value()) return true;
  const auto found = host_of_.find(*worker);
  if (found == host_of_.end()) return true;
  if (found->second != host) return false;
  // The exit is the last message about this start of the worker; another start adds the entry
  // again. Without the erasure the map would grow with every replaced worker.
  if (message.has_exited()) host_of_.erase(found);
  return true;
}

// The end of a stream. Only the host's current stream makes it a loss of the host: the end of a
// stream that was replaced is ignored.
void AgentService::Left(const AgentStream& stream, const std::string& host,
                        const std::string& reason) {
  absl::MutexLock lock(&mu_);
  const auto found = attached_.find(host);
  if (found == attached_.end() || found->second.stream.get() != &stream) return;
  const Incarnation agent = found->second.agent;
  const std::string leaves_for = found->second.leaves_for;
  attached_.erase(found);
  // HostLost ends these workers, so no exit will remove their entries.
  for (auto entry = host_of_.begin(); entry != host_of_.end();) {
    entry = entry->second == host ? host_of_.erase(entry) : std::next(entry);
  }
  // Under the lock: the same agent may attach again, and its HostJoined must come after this event.
  options_.post(membership::HostLost{host, agent, leaves_for.empty() ? reason : leaves_for});
}

bool AgentService::busy() {
  absl::MutexLock lock(&mu_);
  return !streams_.empty();
}

void AgentService::Forget(const StreamPtr& stream) {
  absl::MutexLock lock(&mu_);
  streams_.erase(stream);
}

void AgentService::Handle(const membership::StartWorkerEffect& effect) {
  pb::AgentCommand command;
  pb::StartWorker& start = *command.mutable_start();
  start.set_worker_id(effect.worker.value());
  *start.mutable_placement() = transport::ToMessage(effect.place);
  start.set_slot(effect.slot);
  start.set_most_on_machine(effect.most_on_machine);
  if (effect.torch.groups > 0) *start.mutable_torch() = transport::ToMessage(effect.torch);
  {
    absl::MutexLock lock(&mu_);
    // Before the command is sent: a worker that can't be started exits at once, and its exit must
    // find this entry in order to erase it.
    host_of_[effect.worker] = effect.host;
  }
  Send(effect.host, effect.agent, std::move(command));
}

void AgentService::Handle(const membership::StopWorkersEffect& effect) {
  pb::AgentCommand command;
  for (const WorkerId worker : effect.workers) {
    command.mutable_stop()->add_worker_ids(worker.value());
  }
  command.mutable_stop()->set_grace_ms(transport::ToMilliseconds(effect.grace));
  Send(effect.host, effect.agent, std::move(command));
}

void AgentService::Handle(const membership::SampleWorkerEffect& effect) {
  pb::AgentCommand command;
  command.mutable_sample()->set_worker_id(effect.worker.value());
  Send(effect.host, effect.agent, std::move(command));
}

void AgentService::Handle(const membership::KeepCommitsEffect& effect) {
  pb::AgentCommand command;
  command.mutable_keep()->set_address(effect.from_address);
  Send(effect.host, effect.agent, std::move(command));
}

void AgentService::Handle(const membership::HoldHostEffect& effect) {
  pb::AgentCommand command;
  command.mutable_hold()->set_reason(
      absl::StrCat("host ", effect.host, " waits until it is offered to the job"));
  Send(effect.host, effect.agent, std::move(command));
}

void AgentService::Handle(const membership::EndJobEffect& effect) {
  pb::AgentCommand command;
  command.mutable_end()->set_grace_ms(transport::ToMilliseconds(effect.grace));
  command.mutable_end()->set_exit_code(effect.exit_code);
  command.mutable_end()->set_summary(effect.summary);
  Send(effect.host, effect.agent, std::move(command));
}

void AgentService::SignalWorkers(int signal) {
  pb::AgentCommand command;
  command.mutable_signal()->set_number(signal);
  std::vector<StreamPtr> streams;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [host, attached] : attached_) streams.push_back(attached.stream);
  }
  for (const StreamPtr& stream : streams) stream->Send(command);
}

void AgentService::Send(const std::string& host, Incarnation agent, pb::AgentCommand command) {
  StreamPtr stream;
  {
    absl::MutexLock lock(&mu_);
    const auto found = attached_.find(host);
    // The effect names the incarnation for which it was decided. Another one that is attached
    // meanwhile knows nothing of these workers.
    if (found == attached_.end() || found->second.agent != agent) return;
    stream = found->second.stream;
  }
  stream->Send(std::move(command));
}

std::string AgentService::command() {
  absl::MutexLock lock(&mu_);
  return command_;
}

void AgentService::JobOver() {
  absl::MutexLock lock(&mu_);
  job_over_ = true;
}

void AgentService::Close(const absl::Status& status) {
  std::set<StreamPtr> streams;
  {
    absl::MutexLock lock(&mu_);
    closed_ = status;
    // A copy, since a stream that ends takes mu_ and erases itself from streams_.
    streams = streams_;
  }
  for (const StreamPtr& stream : streams) stream->Close(status, AgentStream::Queued::kSend);
}

}  // namespace hvd::rendezvous::server
