#include "collectives/communicator.h"

#include <cstring>
#include <memory>
#include <vector>

#include "base/status_macros.h"

namespace hvd::collectives {
namespace {

// Stretches below this size are packed: copying one costs less than a broadcast's fixed costs.
constexpr size_t kPackedBytes = size_t{512} << 10;
constexpr size_t kPackBytes = size_t{8} << 20;

// The number of stretches that the next pack holds, and their size in `bytes`. 0: the first stretch
// is too large to be packed.
size_t CountPack(absl::Span<const Stretch> stretches, size_t& bytes) {
  size_t count = 0;
  for (bytes = 0; count < stretches.size(); ++count) {
    const size_t more = stretches[count].bytes;
    if (more >= kPackedBytes || bytes + more > kPackBytes) break;
    bytes += more;
  }
  return count;
}

void CopyStretch(void* to, const void* from, size_t bytes) {
  // memcpy must not get null pointers, even for no bytes; empty stretches have them.
  if (bytes > 0) memcpy(to, from, bytes);
}

}  // namespace

absl::Status Communicator::BroadcastStretches(absl::Span<const Stretch> stretches, int root,
                                              ObserveFunction observe, const CallOptions& options) {
  std::unique_ptr<char[]> pack;
  while (!stretches.empty()) {
    size_t bytes = 0;
    // All ranks have stretches of the same sizes, so they make the same packs without agreeing on
    // them.
    const size_t count = CountPack(stretches, bytes);
    if (count == 0) {
      const Stretch& large = stretches.front();
      RETURN_IF_ERROR(Broadcast(large.data, large.bytes, root, options));
      observe(large.data, large.bytes);
      stretches.remove_prefix(1);
      continue;
    }
    if (pack == nullptr) pack.reset(new char[kPackBytes]);
    char* at = pack.get();
    if (rank() == root) {
      for (const Stretch& small : stretches.first(count)) {
        CopyStretch(at, small.data, small.bytes);
        at += small.bytes;
      }
    }
    if (bytes > 0) RETURN_IF_ERROR(Broadcast(pack.get(), bytes, root, options));
    at = pack.get();
    for (const Stretch& small : stretches.first(count)) {
      if (rank() != root) CopyStretch(small.data, at, small.bytes);
      // Observed in the pack, which is in the cache, on the root too.
      if (small.bytes > 0) observe(at, small.bytes);
      at += small.bytes;
    }
    stretches.remove_prefix(count);
  }
  return absl::OkStatus();
}

}  // namespace hvd::collectives
