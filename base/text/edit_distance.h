// The distance of two words, by which a misspelt one is recognized.
#ifndef BASE_TEXT_EDIT_DISTANCE_H_
#define BASE_TEXT_EDIT_DISTANCE_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hvd::text {

// The Levenshtein distance: the smallest number of insertions, deletions and replacements that turn
// `a` into `b`.
int EditDistance(absl::string_view a, absl::string_view b);

// The word that resembles `word` most, the first of several such ones; empty if each of them
// differs by more than `most`.
absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> words,
                          int most);

}  // namespace hvd::text

#endif  // BASE_TEXT_EDIT_DISTANCE_H_
