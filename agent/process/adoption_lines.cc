#include "agent/process/adoption_lines.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/text/json_object.h"

namespace hvd::agent::process {
namespace {

std::string Line(const text::JsonObject& object) { return absl::StrCat(object.Text(), "\n"); }

// Removes leading blanks and then `token` from the front; returns whether `token` was there.
bool Consume(absl::string_view token, absl::string_view& text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  return absl::ConsumePrefix(&text, token);
}

}  // namespace

std::string StartLine(const std::map<std::string, std::string>& own,
                      const std::map<std::string, std::string>& wanted) {
  text::JsonObject changes;
  for (const auto& [name, value] : wanted) {
    const auto there = own.find(name);
    if (there == own.end() || there->second != value) changes.AddText(name, value);
  }
  for (const auto& [name, value] : own) {
    if (wanted.count(name) == 0) changes.AddNull(name);
  }
  return Line(text::JsonObject().AddObject("start", changes));
}

std::string StopLine(absl::Duration grace) {
  return Line(text::JsonObject().AddNumber("stop", absl::ToDoubleSeconds(grace)));
}

std::string ErrorLine(absl::string_view error) {
  return Line(text::JsonObject().AddText("error", error));
}

std::optional<int> ParseExitLine(absl::string_view line) {
  if (!Consume("{", line) || !Consume("\"exit\"", line) || !Consume(":", line)) return std::nullopt;
  line = absl::StripTrailingAsciiWhitespace(line);
  int code = 0;
  if (!absl::ConsumeSuffix(&line, "}") || !absl::SimpleAtoi(line, &code)) return std::nullopt;
  return code;
}

}  // namespace hvd::agent::process
