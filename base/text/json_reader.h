// A strict reader of JSON that keeps the place of each value, for messages to who has written the
// text. Pure.
#ifndef BASE_TEXT_JSON_READER_H_
#define BASE_TEXT_JSON_READER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::text {

// In a text: both count from 1, columns in bytes.
struct JsonPlace {
  int line = 1;
  int column = 1;

  std::string Text() const;  // "3:12"
};

struct JsonMember;

struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kList, kObject };

  Kind kind = Kind::kNull;
  JsonPlace place;
  bool boolean = false;
  double number = 0;
  std::string text;                 // UTF-8
  std::vector<JsonValue> elements;  // of a list
  std::vector<JsonMember> members;  // of an object, in their order; no name occurs twice

  // The member of this name; nullptr: there is none.
  const JsonValue* Find(absl::string_view name) const;
};

struct JsonMember {
  std::string name;
  JsonPlace place;  // of the name
  JsonValue value;
};

// Reads one value, and nothing after it but white space. At most 32 lists and objects may contain
// each other.
// Errors:
//   - InvalidArgument: "3:12: ", and what is wrong there.
absl::StatusOr<JsonValue> ReadJson(absl::string_view text);

}  // namespace hvd::text

#endif  // BASE_TEXT_JSON_READER_H_
