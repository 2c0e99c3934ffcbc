// Events to bytes; see proto/timeline.proto.
#ifndef WORKER_RUNTIME_TIMELINE_CHUNK_H_
#define WORKER_RUNTIME_TIMELINE_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {

// A chunk is about this large at most, so that it holds up no announcement.
inline constexpr size_t kChunkBytes = 256 << 10;
// Of an operation's tensors so many are named.
inline constexpr size_t kMostNames = 64;

// Takes the oldest of `events` out, as many as a chunk holds, and encodes them.
std::string EncodeChunk(std::deque<TimelineEvent>& events, const ClockOffset& clock,
                        uint64_t dropped);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_CHUNK_H_
