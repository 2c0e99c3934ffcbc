#include "agent/process/adoption_lines.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/text/json.h"

namespace hvd::agent::process {
namespace {

// Removes leading blanks and then `token` from the front; returns whether `token` was there.
bool Consume(absl::string_view token, absl::string_view& text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  return absl::ConsumePrefix(&text, token);
}

}  // namespace

std::string StartLine(const std::map<std::string, std::string>& own,
                      const std::map<std::string, std::string>& wanted) {
  std::vector<std::string> changes;
  for (const auto& [name, value] : wanted) {
    const auto there = own.find(name);
    if (there != own.end() && there->second == value) continue;
    changes.push_back(absl::StrCat(text::JsonString(name), ": ", text::JsonString(value)));
  }
  for (const auto& [name, value] : own) {
    if (wanted.count(name) == 0) changes.push_back(absl::StrCat(text::JsonString(name), ": null"));
  }
  return absl::StrCat("{\"start\": {", absl::StrJoin(changes, ", "), "}}\n");
}

std::string StopLine(absl::Duration grace) {
  return absl::StrCat("{\"stop\": ", absl::ToDoubleSeconds(grace), "}\n");
}

std::string ErrorLine(absl::string_view error) {
  return absl::StrCat("{\"error\": ", text::JsonString(error), "}\n");
}

std::optional<int> ParseExitLine(absl::string_view line) {
  if (!Consume("{", line) || !Consume("\"exit\"", line) || !Consume(":", line)) return std::nullopt;
  line = absl::StripTrailingAsciiWhitespace(line);
  int code = 0;
  if (!absl::ConsumeSuffix(&line, "}") || !absl::SimpleAtoi(line, &code)) return std::nullopt;
  return code;
}

}  // namespace hvd::agent::process
