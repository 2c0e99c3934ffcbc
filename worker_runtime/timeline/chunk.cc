#include "worker_runtime/timeline/chunk.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "proto/timeline.pb.h"

namespace hvd::worker_runtime::timeline {
namespace {

// The maximum size of an event without its texts.
constexpr size_t kEventBytes = 64;

class Encoder {
 public:
  void Add(const TimelineEvent& event) {
    pb::timeline::Event& out = *chunk_.add_events();
    out.set_kind(static_cast<int32_t>(event.kind));
    out.set_process_set(event.process_set);
    out.set_begin_ns(absl::ToUnixNanos(event.begin));
    out.set_duration_ns(absl::ToInt64Nanoseconds(event.duration));
    out.set_id(event.id);
    if (!event.activity.empty()) out.set_activity(TextOf(event.activity));
    AddTensors(event, out);
    bytes_ += kEventBytes + 4 * static_cast<size_t>(out.names_size() + out.shape_size());
  }

  bool is_full() const { return bytes_ >= kChunkBytes; }
  pb::timeline::Chunk& chunk() { return chunk_; }

 private:
  void AddTensors(const TimelineEvent& event, pb::timeline::Event& out) {
    if (event.tensors.empty()) return;
    const negotiation::TensorSignature& first = *event.tensors.front();
    out.set_op(static_cast<int32_t>(first.op));
    out.set_type(static_cast<int32_t>(first.type));
    out.set_reduction(static_cast<int32_t>(first.reduction));
    out.set_tensor_count(static_cast<uint32_t>(event.tensors.size()));
    int64_t bytes = 0;
    for (const negotiation::SignaturePtr& tensor : event.tensors)
      bytes += negotiation::ByteCount(*tensor);
    out.set_bytes(bytes);
    const size_t named = std::min(event.tensors.size(), kMostNames);
    for (size_t i = 0; i < named; ++i) out.add_names(TextOf(event.tensors[i]->name));
    // Only the wait of a single tensor shows its shape.
    if (event.kind != EventKind::kQueued) return;
    out.mutable_shape()->Add(first.shape.begin(), first.shape.end());
  }

  // Returns the index of a text in the chunk. Each text is sent once, however many events have it:
  // tensor names repeat in every step.
  uint32_t TextOf(absl::string_view text) {
    const auto [found, added] = texts_.try_emplace(text, chunk_.texts_size());
    if (added) {
      chunk_.add_texts(std::string(text));
      bytes_ += text.size();
    }
    return found->second;
  }

  pb::timeline::Chunk chunk_;
  absl::flat_hash_map<std::string, uint32_t> texts_;
  size_t bytes_ = 0;
};

}  // namespace

std::string EncodeChunk(std::deque<TimelineEvent>& events, const ClockOffset& clock,
                        uint64_t dropped) {
  Encoder encoder;
  // What does not fit stays for the next chunk.
  while (!events.empty() && !encoder.is_full()) {
    encoder.Add(events.front());
    events.pop_front();
  }
  pb::timeline::Chunk& chunk = encoder.chunk();
  const bool known = clock.uncertainty < absl::InfiniteDuration();
  chunk.set_clock_offset_ns(absl::ToInt64Nanoseconds(clock.offset));
  chunk.set_clock_uncertainty_ns(known ? absl::ToInt64Nanoseconds(clock.uncertainty) : -1);
  chunk.set_dropped(dropped);
  return chunk.SerializeAsString();
}

}  // namespace hvd::worker_runtime::timeline
