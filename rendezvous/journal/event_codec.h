// The codec of events: to Protobuf messages and back.
#ifndef RENDEZVOUS_JOURNAL_EVENT_CODEC_H_
#define RENDEZVOUS_JOURNAL_EVENT_CODEC_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/journal.pb.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::journal {

// Lossless both ways, except that times and durations are whole nanoseconds.
pb::journal::Event ToMessage(const membership::Event& event, absl::Time time);

// nullopt: a message of an unknown kind.
std::optional<membership::Event> FromMessage(const pb::journal::Event& message);

int64_t ToNanoseconds(absl::Time time);
absl::Time TimeFromNanoseconds(int64_t nanoseconds);
// The infinite duration is the largest number.
int64_t ToNanoseconds(absl::Duration duration);
absl::Duration DurationFromNanoseconds(int64_t nanoseconds);

}  // namespace hvd::rendezvous::journal

#endif  // RENDEZVOUS_JOURNAL_EVENT_CODEC_H_
