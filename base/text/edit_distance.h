// The distance of two words, by which a misspelt one is recognized.
#ifndef BASE_TEXT_EDIT_DISTANCE_H_
#define BASE_TEXT_EDIT_DISTANCE_H_

#include "absl/strings/string_view.h"

namespace hvd::text {

// The Levenshtein distance: the smallest number of insertions, deletions and replacements that turn
// `a` into `b`.
int EditDistance(absl::string_view a, absl::string_view b);

}  // namespace hvd::text

#endif  // BASE_TEXT_EDIT_DISTANCE_H_
