#include "launcher/allocation/excerpt.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hvd::launcher::allocation {

std::string Excerpt(absl::string_view text) {
  constexpr size_t kMost = 100;
  return absl::StrCat(absl::Utf8SafeCHexEscape(text.substr(0, kMost)),
                      text.size() > kMost ? "..." : "");
}

}  // namespace hvd::launcher::allocation
