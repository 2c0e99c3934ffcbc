// Excerpts of schedulers' texts for one-line messages.
#ifndef LAUNCHER_ALLOCATION_EXCERPT_H_
#define LAUNCHER_ALLOCATION_EXCERPT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hvd::launcher::allocation {

// The beginning of `text` in printable characters; "..." stands for the rest.
std::string Excerpt(absl::string_view text);

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_EXCERPT_H_
