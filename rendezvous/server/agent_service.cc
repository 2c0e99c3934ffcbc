#include "rendezvous/server/agent_service.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/text/shortened.h"
#include "base/text/utf8.h"
#include "rendezvous/journal/agent_events.h"
#include "rendezvous/security/peer_host.h"
#include "rendezvous/server/agent_stream.h"
#include "rendezvous/transport/message_time.h"
#include "rendezvous/transport/placement_message.h"

namespace hvd::rendezvous::server {
namespace {

void PassReceived(const pb::AgentMessage& message) {
  if (message.has_exited()) FAILPOINT("daemon.exit.received");
  if (message.has_dying()) FAILPOINT("daemon.dying.received");
  if (message.has_draining()) FAILPOINT("daemon.drain.received");
  if (message.has_kept()) FAILPOINT("daemon.commit_kept.received");
  if (message.has_left()) FAILPOINT("daemon.commit_left.received");
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
  if (absl::Status status = journal::CheckHello(hello); !status.ok()) return status;
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
  FAILPOINT("daemon.host.welcomed");
  options_.post(journal::EventOf(hello));
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
  RETURN_IF_ERROR(journal::CheckNumbers(message));
  {
    absl::MutexLock lock(&mu_);
    const auto found = attached_.find(host);
    if (found == attached_.end() || found->second.stream.get() != &stream) return absl::OkStatus();
    if (!MaySpeakFor(host, message)) return absl::OkStatus();
    if (message.has_leaving()) found->second.leaves_for = message.leaving().reason();
  }
  if (message.has_fault_done() && options_.on_fault_done) {
    options_.on_fault_done(message.fault_done());
  }
  PassReceived(message);
  if (std::optional<membership::Event> event = journal::EventOf(host, message)) {
    options_.post(*std::move(event));
  }
  return absl::OkStatus();
}

bool AgentService::MaySpeakFor(const std::string& host, const pb::AgentMessage& message) {
  const std::optional<WorkerId> worker = journal::WorkerOf(message);
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
  FAILPOINT("daemon.host.lost");
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

bool AgentService::Harm(const std::string& host, const pb::Fault& fault) {
  StreamPtr stream;
  {
    absl::MutexLock lock(&mu_);
    const auto found = attached_.find(host);
    if (found == attached_.end()) return false;
    stream = found->second.stream;
  }
  pb::AgentCommand command;
  *command.mutable_fault() = fault;
  stream->Send(std::move(command));
  return true;
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
