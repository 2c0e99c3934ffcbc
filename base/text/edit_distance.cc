#include "base/text/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hvd::text {

int EditDistance(absl::string_view a, absl::string_view b) {
  // The Wagner-Fischer algorithm with a single row of the table: row[j] is the distance between the
  // part of `a` that was processed so far and b[0..j); `diagonal` is the previous row's entry at j.
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> words,
                          int most) {
  absl::string_view nearest;
  for (const absl::string_view candidate : words) {
    const int distance = EditDistance(word, candidate);
    if (distance > most) continue;
    most = distance - 1;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace hvd::text
