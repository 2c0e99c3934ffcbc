// The encoding of timeline events; see proto/timeline.proto.
#ifndef WORKER_RUNTIME_TIMELINE_CHUNK_H_
#define WORKER_RUNTIME_TIMELINE_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "worker_runtime/timeline/event.h"

namespace hvd::worker_runtime::timeline {

// The approximate maximum of a chunk's size, so that it delays no announcement.
inline constexpr size_t kChunkBytes = 256 << 10;
// The number of an operation's tensors that are named.
inline constexpr size_t kMostNames = 64;

// Removes the oldest of `events`, as many as a chunk holds, and encodes them.
std::string EncodeChunk(std::deque<TimelineEvent>& events, const ClockOffset& clock,
                        uint64_t dropped);

}  // namespace hvd::worker_runtime::timeline

#endif  // WORKER_RUNTIME_TIMELINE_CHUNK_H_
