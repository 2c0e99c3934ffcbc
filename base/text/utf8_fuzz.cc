// Fuzz target: texts of others, which are shown, sent and written as JSON.
#include "base/text/json.h"
#include "base/text/names.h"
#include "base/text/shortened.h"
#include "base/text/utf8.h"
#include "tests/support/fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hvd::Require;
  const absl::string_view text = hvd::AsText(data, size);
  const std::string utf8 = hvd::text::ToUtf8(text);
  Require(hvd::text::IsUtf8(utf8), "it is UTF-8");
  Require(hvd::text::ToUtf8(utf8) == utf8, "UTF-8 stays as it is");
  Require(!hvd::text::IsUtf8(text) || utf8 == text, "a text that is UTF-8 stays as it is");

  const std::string json = hvd::text::JsonString(text);
  Require(hvd::text::IsUtf8(json), "JSON is UTF-8");
  hvd::RequireOneLine(hvd::text::OnOneLine("." + std::string(text.substr(0, 300))));

  constexpr size_t kMost = 200;
  const std::string shorter = hvd::text::Shortened(utf8, kMost);
  Require(shorter.size() <= kMost + 100, "it is short");
  Require(hvd::text::IsUtf8(shorter), "it is cut between characters");
  Require(utf8.size() > kMost || shorter == utf8, "a short text stays as it is");

  const absl::Status named = hvd::text::CheckName("host", text);
  if (!named.ok()) hvd::RequireOneLine(named);
  Require(!named.ok() || utf8 == text, "a name is UTF-8");
  return 0;
}
