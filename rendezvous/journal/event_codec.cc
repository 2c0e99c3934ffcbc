#include "rendezvous/journal/event_codec.h"

#include <limits>
#include <variant>

#include "rendezvous/membership/event_fields.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::journal {
namespace {

// The message's field for this kind of event.
const char* FieldOf(const membership::HostJoined&) { return "host_joined"; }
const char* FieldOf(const membership::HostLost&) { return "host_lost"; }
const char* FieldOf(const membership::HostsDiscovered&) { return "hosts_discovered"; }
const char* FieldOf(const membership::HostDraining&) { return "host_draining"; }
const char* FieldOf(const membership::Restarted&) { return "restarted"; }
const char* FieldOf(const membership::WorkerStarted&) { return "worker_started"; }
const char* FieldOf(const membership::WorkerDying&) { return "worker_dying"; }
const char* FieldOf(const membership::WorkerExited&) { return "worker_exited"; }
const char* FieldOf(const membership::JoinRequested&) { return "join_requested"; }
const char* FieldOf(const membership::WatchRequested&) { return "watch_requested"; }
const char* FieldOf(const membership::ExchangeRequested&) { return "exchange_requested"; }
const char* FieldOf(const membership::Reported&) { return "reported"; }
const char* FieldOf(const membership::ProgressReported&) { return "progress_reported"; }
const char* FieldOf(const membership::StallReported&) { return "stall_reported"; }
const char* FieldOf(const membership::WorkerSampled&) { return "worker_sampled"; }
const char* FieldOf(const membership::CallCancelled&) { return "call_cancelled"; }
const char* FieldOf(const membership::StopRequested&) { return "stop_requested"; }
const char* FieldOf(const membership::Tick&) { return "tick"; }
const char* FieldOf(const membership::LimitsChanged&) { return "limits_changed"; }
const char* FieldOf(const membership::CommitKept&) { return "commit_kept"; }
const char* FieldOf(const membership::CommitLeft&) { return "commit_left"; }

// The value of the field: the event, or a plain number for the simplest events.
template <typename Kind>
Kind& ContentOf(Kind& event) {
  return event;
}
WorkerId& ContentOf(membership::WorkerDying& event) { return event.worker; }
membership::CallId& ContentOf(membership::CallCancelled& event) { return event.call; }

template <typename Kind>
membership::Event Read(const pb::journal::Event& message) {
  Kind event{};
  snapshot::FieldReader reader(message);
  reader(FieldOf(event), ContentOf(event));
  return event;
}

}  // namespace

int64_t ToNanoseconds(absl::Time time) { return absl::ToUnixNanos(time); }

absl::Time TimeFromNanoseconds(int64_t nanoseconds) { return absl::FromUnixNanos(nanoseconds); }

int64_t ToNanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

absl::Duration DurationFromNanoseconds(int64_t nanoseconds) {
  // absl::ToInt64Nanoseconds gives this number for an infinite duration.
  if (nanoseconds == std::numeric_limits<int64_t>::max()) return absl::InfiniteDuration();
  return absl::Nanoseconds(nanoseconds);
}

pb::journal::Event ToMessage(const membership::Event& event, absl::Time time) {
  pb::journal::Event message;
  message.set_time_ns(ToNanoseconds(time));
  snapshot::FieldWriter writer(&message);
  std::visit([&writer](auto each) { writer(FieldOf(each), ContentOf(each)); }, event);
  return message;
}

std::optional<membership::Event> FromMessage(const pb::journal::Event& message) {
  switch (message.kind_case()) {
    case pb::journal::Event::kHostJoined:
      return Read<membership::HostJoined>(message);
    case pb::journal::Event::kHostLost:
      return Read<membership::HostLost>(message);
    case pb::journal::Event::kHostsDiscovered:
      return Read<membership::HostsDiscovered>(message);
    case pb::journal::Event::kHostDraining:
      return Read<membership::HostDraining>(message);
    case pb::journal::Event::kRestarted:
      return Read<membership::Restarted>(message);
    case pb::journal::Event::kWorkerStarted:
      return Read<membership::WorkerStarted>(message);
    case pb::journal::Event::kWorkerDying:
      return Read<membership::WorkerDying>(message);
    case pb::journal::Event::kWorkerExited:
      return Read<membership::WorkerExited>(message);
    case pb::journal::Event::kJoinRequested:
      return Read<membership::JoinRequested>(message);
    case pb::journal::Event::kWatchRequested:
      return Read<membership::WatchRequested>(message);
    case pb::journal::Event::kExchangeRequested:
      return Read<membership::ExchangeRequested>(message);
    case pb::journal::Event::kReported:
      return Read<membership::Reported>(message);
    case pb::journal::Event::kProgressReported:
      return Read<membership::ProgressReported>(message);
    case pb::journal::Event::kStallReported:
      return Read<membership::StallReported>(message);
    case pb::journal::Event::kWorkerSampled:
      return Read<membership::WorkerSampled>(message);
    case pb::journal::Event::kCallCancelled:
      return Read<membership::CallCancelled>(message);
    case pb::journal::Event::kStopRequested:
      return Read<membership::StopRequested>(message);
    case pb::journal::Event::kTick:
      return Read<membership::Tick>(message);
    case pb::journal::Event::kCommitKept:
      return Read<membership::CommitKept>(message);
    case pb::journal::Event::kCommitLeft:
      return Read<membership::CommitLeft>(message);
    case pb::journal::Event::kLimitsChanged:
      return Read<membership::LimitsChanged>(message);
    // A kind that this version does not know has no case either. The journal must not be continued
    // without it.
    case pb::journal::Event::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace hvd::rendezvous::journal
