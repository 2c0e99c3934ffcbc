#include "rendezvous/journal/agent_events.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/net/address.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/version.h"

namespace hvd::rendezvous::journal {
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

membership::WorkerExited EventOf(const pb::WorkerExited& exited) {
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

membership::WorkerSampled EventOf(const pb::WorkerSampled& sampled) {
  return {WorkerId(sampled.worker_id()),
          sampled.doing(),
          {sampled.stack().begin(), sampled.stack().end()}};
}

}  // namespace

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
    return absl::FailedPreconditionError(absl::StrCat(
        "horovod-agent on ", hello.host(), " has version ",
        text::OnOneLine(hello.version().substr(0, 100)), ", the daemon has ", kVersion));
  }
  return absl::OkStatus();
}

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

membership::HostJoined EventOf(const pb::AgentHello& hello) {
  membership::HostJoined joined;
  joined.host = {hello.host(), static_cast<int>(hello.slots()), hello.machine()};
  joined.agent = Incarnation(hello.incarnation());
  joined.store_address = hello.store_address();
  joined.commit_address = hello.commit_address();
  joined.commit = hello.commit();
  for (const uint64_t worker : hello.known_workers()) {
    joined.known_workers.push_back(WorkerId(worker));
  }
  return joined;
}

std::optional<membership::Event> EventOf(const std::string& host, const pb::AgentMessage& message) {
  switch (message.message_case()) {
    case pb::AgentMessage::kStarted:
      return membership::WorkerStarted{WorkerId(message.started().worker_id()),
                                       message.started().pid()};
    case pb::AgentMessage::kExited:
      return EventOf(message.exited());
    case pb::AgentMessage::kDying:
      return membership::WorkerDying{WorkerId(message.dying().worker_id())};
    case pb::AgentMessage::kDraining:
      return membership::HostDraining{host, absl::Milliseconds(message.draining().grace_ms()),
                                      message.draining().reason(), message.draining().at_once()};
    case pb::AgentMessage::kSampled:
      return EventOf(message.sampled());
    case pb::AgentMessage::kKept:
      return membership::CommitKept{host, message.kept().commit(), message.kept().failure()};
    case pb::AgentMessage::kLeft:
      return membership::CommitLeft{host, message.left().commit()};
    case pb::AgentMessage::kFaultDone:
    case pb::AgentMessage::kLeaving:  // the end of the stream follows
    case pb::AgentMessage::kHello:
    case pb::AgentMessage::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

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
    case pb::AgentMessage::kFaultDone:
    case pb::AgentMessage::MESSAGE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace hvd::rendezvous::journal
