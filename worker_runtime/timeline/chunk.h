// The encoding of timeline events into chunks; see proto/timeline.proto.
#ifndef WORKER_RUNTIME_TIMELINE_CHUNK_H_
#define WORKER_RUNTIME_TIMELINE_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {

// The approximate maximum size of a chunk. Chunks travel within announcements, which larger ones
// would delay.
inline constexpr size_t kChunkBytes = 256 << 10;
// The largest number of an operation's tensors whose names are encoded.
inline constexpr size_t kMostNames = 64;

// Removes the oldest events, as many as fit into a chunk, and encodes them. `dropped` is the number
// of events that were lost before them.
std::string EncodeChunk(std::deque<TimelineEvent>& events, const ClockOffset& clock,
                        uint64_t dropped);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_CHUNK_H_
