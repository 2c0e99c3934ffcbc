// A view of a list of memory blocks as one contiguous range of bytes.
#ifndef COLLECTIVES_SHM_STRETCH_LIST_H_
#define COLLECTIVES_SHM_STRETCH_LIST_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "collectives/communicator.h"

namespace hvd::collectives::shm {

// Pure. Borrows the stretches. In the range, each begins at a multiple of kStretchAlignment.
class StretchList {
 public:
  explicit StretchList(absl::Span<const Stretch> stretches) : stretches_(stretches) {
    begins_.reserve(stretches.size());
    for (const Stretch& stretch : stretches) {
      bytes_ = (bytes_ + kStretchAlignment - 1) / kStretchAlignment * kStretchAlignment;
      begins_.push_back(bytes_);
      bytes_ += stretch.bytes;
    }
  }

  // The size of the range, including the gaps between the stretches.
  size_t bytes() const { return bytes_; }

  // Calls visit(data, offset from `begin`, bytes) for each part of a stretch that lies between
  // `begin` and `end`.
  template <typename Visit>
  void ForEach(size_t begin, size_t end, Visit&& visit) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin);
    auto index = static_cast<size_t>(after - begins_.begin());
    if (index > 0) --index;
    for (; index < begins_.size() && begins_[index] < end; ++index) {
      const Stretch& stretch = stretches_[index];
      const size_t from = std::max(begin, begins_[index]);
      const size_t to = std::min(end, begins_[index] + stretch.bytes);
      if (from >= to) continue;
      visit(static_cast<char*>(stretch.data) + (from - begins_[index]), from - begin, to - from);
    }
  }

 private:
  const absl::Span<const Stretch> stretches_;
  std::vector<size_t> begins_;
  size_t bytes_ = 0;
};

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_STRETCH_LIST_H_
