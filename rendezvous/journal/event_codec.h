// Conversion between membership events and their Protobuf messages.
#ifndef RENDEZVOUS_JOURNAL_EVENT_CODEC_H_
#define RENDEZVOUS_JOURNAL_EVENT_CODEC_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/journal.pb.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::journal {

// Lossless, except that times and durations are truncated to whole nanoseconds.
pb::journal::Event ToMessage(const membership::Event& event, absl::Time time);

// Returns nullopt if the message is of an unknown kind.
std::optional<membership::Event> FromMessage(const pb::journal::Event& message);

int64_t ToNanoseconds(absl::Time time);
absl::Time TimeFromNanoseconds(int64_t nanoseconds);
// InfiniteDuration is the largest int64.
int64_t ToNanoseconds(absl::Duration duration);
absl::Duration DurationFromNanoseconds(int64_t nanoseconds);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_EVENT_CODEC_H_
