#include "base/text/json_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hvd::text {
namespace {

std::string ErrorOf(absl::string_view text) {
  return std::string(ReadJson(text).status().message());
}

TEST(ReadJson, AllKindsOfValues) {
  const auto value =
      ReadJson(R"({"a": [1, -2.5e1, true, null], "b": {"c": "x\n\u00e9\ud83d\ude00"}})");
  ASSERT_TRUE(value.ok()) << value.status();
  const JsonValue& list = *value->Find("a");
  ASSERT_EQ(list.elements.size(), 4U);
  EXPECT_EQ(list.elements[0].number, 1);
  EXPECT_EQ(list.elements[1].number, -25);
  EXPECT_TRUE(list.elements[2].boolean);
  EXPECT_EQ(list.elements[3].kind, JsonValue::Kind::kNull);
  EXPECT_EQ(value->Find("b")->Find("c")->text, "x\n\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(value->Find("d"), nullptr);
}

TEST(ReadJson, PlacesCountLinesAndColumns) {
  const auto value = ReadJson("{\n  \"a\": 1,\n  \"b\": [\n    2]}");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->place.Text(), "1:1");
  EXPECT_EQ(value->members[1].place.Text(), "3:3");
  EXPECT_EQ(value->Find("b")->elements[0].place.Text(), "4:5");
}

TEST(ReadJson, ErrorsNameTheirPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "1:1: the text ends where a value is expected"},
      {"{} x", "1:4: nothing may follow the end of the value"},
      {"{\"a\" 1}", "1:6: a colon is expected"},
      {"{\"a\": 1,}", "1:9: a name in double quotes is expected"},
      {"{a: 1}", "1:2: a name in double quotes is expected"},
      {"[1 2]", "1:4: a comma or ] is expected"},
      {"[1,\n 01]", "2:2: a value is expected"},
      {"[+1]", "1:2: a value is expected"},
      {"[.5]", "1:2: a value is expected"},
      {"[1.]", "1:2: a value is expected"},
      {"[NaN]", "1:2: a value is expected"},
      {"{\"a\": 1, \"a\": 2}", "1:10: \"a\" is given twice"},
      {"\"x", "1:3: the closing quote is missing"},
      {"\"\t\"", "1:2: a control character"},
      {"\"\\q\"", "1:2: there is no such escape"},
      {"\"\\u12\"", "1:2: \\u needs four hexadecimal digits"},
      {"\"\\ud800x\"", "1:8: half of a surrogate pair"},
      {"\"\xff\"", "1:1: this is not UTF-8"},
      {std::string(40, '['), "1:33: too many lists"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_EQ(ErrorOf(text).substr(0, error.size()), error) << text;
  }
}

}  // namespace
}  // namespace hvd::text
