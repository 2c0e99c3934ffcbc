#include "rendezvous/journal/event_codec.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hvd::rendezvous::journal {
namespace {

// What is taken apart here is so by structured bindings: a field that is added to an event does not
// compile before it is kept.

void Put(const membership::HostSlots& from, pb::journal::HostSlots& to) {
  const auto& [host, slots] = from;
  to.set_host(host);
  to.set_slots(slots);
}

membership::HostSlots Get(const pb::journal::HostSlots& from) {
  return {from.host(), from.slots()};
}

void Put(const membership::WorkerKey& from, pb::journal::WorkerKey& to) {
  const auto& [id, incarnation] = from;
  to.set_id(id.value());
  to.set_incarnation(incarnation.value());
}

membership::WorkerKey Get(const pb::journal::WorkerKey& from) {
  return {WorkerId(from.id()), Incarnation(from.incarnation())};
}

// ---- One pair of functions per kind.

void Put(const membership::HostJoined& from, pb::journal::Event& to) {
  const auto& [host, agent, known_workers] = from;
  pb::journal::HostJoined& message = *to.mutable_host_joined();
  Put(host, *message.mutable_host());
  message.set_agent(agent.value());
  for (const WorkerId worker : known_workers) message.add_known_workers(worker.value());
}

membership::HostJoined Get(const pb::journal::HostJoined& from) {
  membership::HostJoined event{Get(from.host()), Incarnation(from.agent()), {}};
  for (const uint64_t worker : from.known_workers()) {
    event.known_workers.push_back(WorkerId(worker));
  }
  return event;
}

void Put(const membership::HostLost& from, pb::journal::Event& to) {
  const auto& [host, agent, reason] = from;
  pb::journal::HostLost& message = *to.mutable_host_lost();
  message.set_host(host);
  message.set_agent(agent.value());
  message.set_reason(reason);
}

membership::HostLost Get(const pb::journal::HostLost& from) {
  return {from.host(), Incarnation(from.agent()), from.reason()};
}

void Put(const membership::HostsDiscovered& from, pb::journal::Event& to) {
  const auto& [hosts] = from;
  pb::journal::HostsDiscovered& message = *to.mutable_hosts_discovered();
  for (const membership::HostSlots& host : hosts) Put(host, *message.add_hosts());
}

membership::HostsDiscovered Get(const pb::journal::HostsDiscovered& from) {
  membership::HostsDiscovered event;
  for (const pb::journal::HostSlots& host : from.hosts()) event.hosts.push_back(Get(host));
  return event;
}

void Put(const membership::HostDraining& from, pb::journal::Event& to) {
  const auto& [host, grace, reason] = from;
  pb::journal::HostDraining& message = *to.mutable_host_draining();
  message.set_host(host);
  message.set_grace_ns(ToNanoseconds(grace));
  message.set_reason(reason);
}

membership::HostDraining Get(const pb::journal::HostDraining& from) {
  return {from.host(), DurationFromNanoseconds(from.grace_ns()), from.reason()};
}

void Put(const membership::Restarted&, pb::journal::Event& to) { to.mutable_restarted(); }

void Put(const membership::WorkerStarted& from, pb::journal::Event& to) {
  const auto& [worker, pid] = from;
  to.mutable_worker_started()->set_worker(worker.value());
  to.mutable_worker_started()->set_pid(pid);
}

membership::WorkerStarted Get(const pb::journal::WorkerStarted& from) {
  return {WorkerId(from.worker()), from.pid()};
}

void Put(const membership::WorkerDying& from, pb::journal::Event& to) {
  const auto& [worker] = from;
  to.set_worker_dying(worker.value());
}

void Put(const membership::WorkerExited& from, pb::journal::Event& to) {
  const auto& [worker, exit_code, signal, core_dumped, out_of_memory, stderr_tail, start_error,
               killed_for] = from;
  pb::journal::WorkerExited& message = *to.mutable_worker_exited();
  message.set_worker(worker.value());
  message.set_exit_code(exit_code);
  message.set_signal(signal);
  message.set_core_dumped(core_dumped);
  message.set_out_of_memory(out_of_memory);
  for (const std::string& line : stderr_tail) message.add_stderr_tail(line);
  message.set_start_error(start_error);
  message.set_killed_for(killed_for);
}

membership::WorkerExited Get(const pb::journal::WorkerExited& from) {
  return {WorkerId(from.worker()), from.exit_code(),
          from.signal(),           from.core_dumped(),
          from.out_of_memory(),    {from.stderr_tail().begin(), from.stderr_tail().end()},
          from.start_error(),      from.killed_for()};
}

void Put(const membership::JoinRequested& from, pb::journal::Event& to) {
  const auto& [call, worker, last_epoch, address, control_port, may_defer, commit, worked, left_for,
               lost_steps, lost_time] = from;
  pb::journal::JoinRequested& message = *to.mutable_join_requested();
  message.set_call(call.value());
  Put(worker, *message.mutable_worker());
  message.set_last_epoch(last_epoch.value());
  message.set_address(address);
  message.set_control_port(control_port);
  message.set_may_defer(may_defer);
  message.set_commit(commit);
  message.set_worked(worked);
  message.set_left_for(left_for);
  message.set_lost_steps(lost_steps);
  message.set_lost_time_ns(ToNanoseconds(lost_time));
}

membership::JoinRequested Get(const pb::journal::JoinRequested& from) {
  return {membership::CallId(from.call()),
          Get(from.worker()),
          Epoch(from.last_epoch()),
          from.address(),
          from.control_port(),
          from.may_defer(),
          from.commit(),
          from.worked(),
          from.left_for(),
          from.lost_steps(),
          DurationFromNanoseconds(from.lost_time_ns())};
}

void Put(const membership::WatchRequested& from, pb::journal::Event& to) {
  const auto& [call, worker, epoch, knows_of_change] = from;
  pb::journal::WatchRequested& message = *to.mutable_watch_requested();
  message.set_call(call.value());
  Put(worker, *message.mutable_worker());
  message.set_epoch(epoch.value());
  message.set_knows_of_change(knows_of_change);
}

membership::WatchRequested Get(const pb::journal::WatchRequested& from) {
  return {membership::CallId(from.call()), Get(from.worker()), Epoch(from.epoch()),
          from.knows_of_change()};
}

void Put(const membership::ExchangeRequested& from, pb::journal::Event& to) {
  const auto& [call, worker, epoch, key, value] = from;
  pb::journal::ExchangeRequested& message = *to.mutable_exchange_requested();
  message.set_call(call.value());
  Put(worker, *message.mutable_worker());
  message.set_epoch(epoch.value());
  message.set_key(key);
  message.set_value(value);
}

membership::ExchangeRequested Get(const pb::journal::ExchangeRequested& from) {
  return {membership::CallId(from.call()), Get(from.worker()), Epoch(from.epoch()), from.key(),
          from.value()};
}

void Put(const membership::Reported& from, pb::journal::Event& to) {
  const auto& [call, worker, epoch, finished, failure, caused_by_peer] = from;
  pb::journal::Reported& message = *to.mutable_reported();
  message.set_call(call.value());
  Put(worker, *message.mutable_worker());
  message.set_epoch(epoch.value());
  message.set_finished(finished);
  message.set_failure(failure);
  message.set_caused_by_peer(caused_by_peer);
}

membership::Reported Get(const pb::journal::Reported& from) {
  return {membership::CallId(from.call()),
          Get(from.worker()),
          Epoch(from.epoch()),
          from.finished(),
          from.failure(),
          from.caused_by_peer()};
}

void Put(const membership::ProgressReported& from, pb::journal::Event& to) {
  const auto& [call, worker, epoch, commit, commit_age] = from;
  pb::journal::ProgressReported& message = *to.mutable_progress_reported();
  message.set_call(call.value());
  Put(worker, *message.mutable_worker());
  message.set_epoch(epoch.value());
  message.set_commit(commit);
  message.set_commit_age_ns(ToNanoseconds(commit_age));
}

membership::ProgressReported Get(const pb::journal::ProgressReported& from) {
  return {membership::CallId(from.call()), Get(from.worker()), Epoch(from.epoch()), from.commit(),
          DurationFromNanoseconds(from.commit_age_ns())};
}

void Put(const membership::StallReported& from, pb::journal::Event& to) {
  const auto& [call, worker, epoch, waited, give_up, waiting] = from;
  pb::journal::StallReported& message = *to.mutable_stall_reported();
  message.set_call(call.value());
  Put(worker, *message.mutable_worker());
  message.set_epoch(epoch.value());
  message.set_waited_ns(ToNanoseconds(waited));
  message.set_give_up(give_up);
  for (const auto& [what, missing] : waiting) {
    pb::journal::StalledOperations& operations = *message.add_waiting();
    operations.set_what(what);
    *operations.mutable_missing() = {missing.begin(), missing.end()};
  }
}

membership::StallReported Get(const pb::journal::StallReported& from) {
  membership::StallReported event{
      membership::CallId(from.call()),           Get(from.worker()), Epoch(from.epoch()),
      DurationFromNanoseconds(from.waited_ns()), from.give_up(),     {}};
  for (const pb::journal::StalledOperations& operations : from.waiting()) {
    event.waiting.push_back(
        {operations.what(), {operations.missing().begin(), operations.missing().end()}});
  }
  return event;
}

void Put(const membership::WorkerSampled& from, pb::journal::Event& to) {
  const auto& [worker, doing, stack] = from;
  pb::journal::WorkerSampled& message = *to.mutable_worker_sampled();
  message.set_worker(worker.value());
  message.set_doing(doing);
  for (const std::string& frame : stack) message.add_stack(frame);
}

membership::WorkerSampled Get(const pb::journal::WorkerSampled& from) {
  return {WorkerId(from.worker()), from.doing(), {from.stack().begin(), from.stack().end()}};
}

void Put(const membership::CallCancelled& from, pb::journal::Event& to) {
  const auto& [call] = from;
  to.set_call_cancelled(call.value());
}

void Put(const membership::StopRequested& from, pb::journal::Event& to) {
  const auto& [reason, exit_code, grace] = from;
  pb::journal::StopRequested& message = *to.mutable_stop_requested();
  message.set_reason(reason);
  message.set_exit_code(exit_code);
  message.set_grace_ns(ToNanoseconds(grace));
}

membership::StopRequested Get(const pb::journal::StopRequested& from) {
  return {from.reason(), from.exit_code(), DurationFromNanoseconds(from.grace_ns())};
}

void Put(const membership::Tick&, pb::journal::Event& to) { to.mutable_tick(); }

}  // namespace

int64_t ToNanoseconds(absl::Time time) { return absl::ToUnixNanos(time); }

absl::Time TimeFromNanoseconds(int64_t nanoseconds) { return absl::FromUnixNanos(nanoseconds); }

int64_t ToNanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

absl::Duration DurationFromNanoseconds(int64_t nanoseconds) {
  if (nanoseconds == std::numeric_limits<int64_t>::max()) return absl::InfiniteDuration();
  return absl::Nanoseconds(nanoseconds);
}

pb::journal::Event ToMessage(const membership::Event& event, absl::Time time) {
  pb::journal::Event message;
  message.set_time_ns(ToNanoseconds(time));
  std::visit([&](const auto& each) { Put(each, message); }, event);
  return message;
}

std::optional<membership::Event> FromMessage(const pb::journal::Event& message) {
  switch (message.kind_case()) {
    case pb::journal::Event::kHostJoined:
      return Get(message.host_joined());
    case pb::journal::Event::kHostLost:
      return Get(message.host_lost());
    case pb::journal::Event::kHostsDiscovered:
      return Get(message.hosts_discovered());
    case pb::journal::Event::kHostDraining:
      return Get(message.host_draining());
    case pb::journal::Event::kRestarted:
      return membership::Restarted{};
    case pb::journal::Event::kWorkerStarted:
      return Get(message.worker_started());
    case pb::journal::Event::kWorkerDying:
      return membership::WorkerDying{WorkerId(message.worker_dying())};
    case pb::journal::Event::kWorkerExited:
      return Get(message.worker_exited());
    case pb::journal::Event::kJoinRequested:
      return Get(message.join_requested());
    case pb::journal::Event::kWatchRequested:
      return Get(message.watch_requested());
    case pb::journal::Event::kExchangeRequested:
      return Get(message.exchange_requested());
    case pb::journal::Event::kReported:
      return Get(message.reported());
    case pb::journal::Event::kProgressReported:
      return Get(message.progress_reported());
    case pb::journal::Event::kStallReported:
      return Get(message.stall_reported());
    case pb::journal::Event::kWorkerSampled:
      return Get(message.worker_sampled());
    case pb::journal::Event::kCallCancelled:
      return membership::CallCancelled{membership::CallId(message.call_cancelled())};
    case pb::journal::Event::kStopRequested:
      return Get(message.stop_requested());
    case pb::journal::Event::kTick:
      return membership::Tick{};
    case pb::journal::Event::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace hvd::rendezvous::journal
