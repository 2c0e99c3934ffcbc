// A view of a list of memory blocks as one vector of elements.
#ifndef COLLECTIVES_PIECE_LIST_H_
#define COLLECTIVES_PIECE_LIST_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "collectives/communicator.h"

namespace hvd::collectives {

// Pure. Borrows the pieces.
class PieceList {
 public:
  PieceList(absl::Span<const Piece> pieces, size_t element_bytes)
      : pieces_(pieces), element_bytes_(element_bytes) {
    for (const Piece& piece : pieces) {
      begins_.push_back(count_);
      count_ += piece.count;
    }
  }

  size_t count() const { return count_; }
  size_t element_bytes() const { return element_bytes_; }

  // Calls visit(in, out, offset in bytes from `begin`, count) for each part of a block that holds
  // elements from `begin` up to, but not including, `end`.
  template <typename Visit>
  void ForEach(size_t begin, size_t end, Visit&& visit) const {
    if (begin >= end) return;
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin);
    auto index = static_cast<size_t>(after - begins_.begin()) - 1;
    for (size_t at = begin; at < end; ++index) {
      const Piece& piece = pieces_[index];
      const size_t offset = at - begins_[index];
      const size_t count = std::min(piece.count - offset, end - at);
      if (count == 0) continue;
      visit(static_cast<const char*>(piece.in) + offset * element_bytes_,
            static_cast<char*>(piece.out) + offset * element_bytes_, (at - begin) * element_bytes_,
            count);
      at += count;
    }
  }

 private:
  const absl::Span<const Piece> pieces_;
  const size_t element_bytes_;
  std::vector<size_t> begins_;
  size_t count_ = 0;
};

}  // namespace hvd::collectives

#endif  // COLLECTIVES_PIECE_LIST_H_
