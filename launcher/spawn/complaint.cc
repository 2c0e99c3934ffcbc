#include "launcher/spawn/complaint.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hvd::launcher::spawn {

std::optional<Explanation> FindComplaint(absl::Span<const Complaint> complaints,
                                         const std::string& name,
                                         const std::vector<std::string>& lines) {
  // The order of the table counts, not that of the lines: a specific complaint is followed by
  // general ones, such as ssh's "Connection closed".
  for (const Complaint& complaint : complaints) {
    for (const std::string& line : lines) {
      if (!absl::StrContains(line, complaint.sentence)) continue;
      const absl::string_view said = absl::StripPrefix(line, absl::StrCat(name, ":"));
      return Explanation{std::string(complaint.meaning),
                         std::string(absl::StripAsciiWhitespace(said))};
    }
  }
  return std::nullopt;
}

}  // namespace hvd::launcher::spawn
