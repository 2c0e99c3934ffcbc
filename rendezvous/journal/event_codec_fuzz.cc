// Fuzz target: events of a journal, and what bounds the events of a daemon before they get there.
#include "rendezvous/journal/event_bounds.h"
#include "rendezvous/journal/event_codec.h"
#include "rendezvous/snapshot/fields.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::journal {
namespace {

void Check(absl::string_view bytes) {
  pb::journal::Event message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  auto event = FromMessage(message);
  if (!event.has_value()) return;
  const absl::Status recordable = Bound(*event);
  if (!recordable.ok()) return RequireOneLine(recordable);
  const absl::Time time = TimeFromNanoseconds(message.time_ns());
  const pb::journal::Event encoded = ToMessage(*event, time);
  Require(snapshot::HasNumbersInRange(encoded), "the numbers are bounded");
  const std::string written = encoded.SerializeAsString();
  Require(written.size() <= kLargestEvent + 100, "the size is bounded");
  const auto again = FromMessage(encoded);
  Require(again.has_value(), "what was written can be read");
  Require(ToMessage(*again, time).SerializeAsString() == written, "the event stays the same");
}

}  // namespace
}  // namespace hvd::rendezvous::journal

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::rendezvous::journal::Check(hvd::AsText(data, size));
  return 0;
}
