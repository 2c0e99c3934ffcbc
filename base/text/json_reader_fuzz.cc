// Fuzz target: texts that somebody calls JSON. What is accepted has a place within the text, and a
// string in it survives another encoding.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/text/json.h"
#include "base/text/json_reader.h"
#include "tests/support/fuzzing.h"

namespace hvd::text {
namespace {

void Check(const JsonValue& value, absl::string_view text) {
  Require(value.place.line >= 1 && value.place.column >= 1, "a place counts from 1");
  Require(static_cast<size_t>(value.place.column) <= text.size(), "a place is within the text");
  if (value.kind == JsonValue::Kind::kString) {
    const auto again = ReadJson(JsonString(value.text));
    Require(again.ok() && again->text == value.text, "a string survives another encoding");
  }
  for (const JsonValue& element : value.elements) Check(element, text);
  for (const JsonMember& member : value.members) {
    Require(value.Find(member.name) == &member.value, "names are unique");
    Check(member.value, text);
  }
}

}  // namespace
}  // namespace hvd::text

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = hvd::AsText(data, size);
  const auto value = hvd::text::ReadJson(text);
  if (value.ok()) hvd::text::Check(*value, text);
  return 0;
}
