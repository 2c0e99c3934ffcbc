// Fuzz target: lines of an adopted process, and what of a job's environment is sent to it.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/process/adoption_lines.h"
#include "base/text/json.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const absl::string_view line = hvd::AsText(data, size);
  const auto code = hvd::agent::process::ParseExitLine(line);
  if (code.has_value()) {
    const std::string again = absl::StrCat("{\"exit\": ", *code, "}\n");
    Require(hvd::agent::process::ParseExitLine(again) == code, "a code stays the same");
  }
  hvd::InputParts parts(data, size);
  const std::string name(parts.Text()), value(parts.Text());
  for (const std::string& sent : {hvd::agent::process::StartLine({{value, name}}, {{name, value}}),
                                  hvd::agent::process::ErrorLine(line)}) {
    Require(absl::EndsWith(sent, "}\n") && sent.find('\n') == sent.size() - 1, "it is one line");
    Require(hvd::text::IsUtf8(sent), "it is UTF-8");
  }
  return 0;
}
