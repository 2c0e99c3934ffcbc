#include "rendezvous/journal/event_codec.h"

#include <limits>
#include <variant>

#include "rendezvous/membership/event_fields.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::journal {
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
  // A copy, because the mapping serves both directions, so the writer takes it by non-const
  // reference.
  std::visit([&writer](auto each) { KeepKind(writer, each); }, event);
  return message;
}

std::optional<membership::Event> FromMessage(const pb::journal::Event& message) {
  std::optional<membership::Event> event = membership::EventOfKind(message.kind_case());
  // A kind that this version does not know. The journal must not be continued without it.
  if (!event.has_value()) return std::nullopt;
  snapshot::FieldReader reader(message);
  std::visit([&reader](auto& each) { KeepKind(reader, each); }, *event);
  return event;
}

}  // namespace hvd::rendezvous::journal
