// A JSON object that is written member by member.
#ifndef BASE_TEXT_JSON_OBJECT_H_
#define BASE_TEXT_JSON_OBJECT_H_

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/text/json.h"

namespace hvd::text {

// Members keep the order of the calls. Names are not checked: the caller gives each once. Not
// thread-safe.
class JsonObject {
 public:
  JsonObject& AddText(absl::string_view name, absl::string_view text) {
    return Add(name, JsonString(text));
  }
  JsonObject& AddTime(absl::string_view name, absl::Time time) { return Add(name, JsonTime(time)); }
  JsonObject& AddBool(absl::string_view name, bool value) {
    return Add(name, value ? "true" : "false");
  }
  JsonObject& AddNull(absl::string_view name) { return Add(name, "null"); }
  // A number that is absent is null. Fractions have at most 15 digits.
  template <typename Number>
  JsonObject& AddNumber(absl::string_view name, const std::optional<Number>& value) {
    return value.has_value() ? AddNumber(name, *value) : AddNull(name);
  }
  template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  JsonObject& AddNumber(absl::string_view name, Number value) {
    if constexpr (std::is_floating_point_v<Number>) {
      return Add(name, absl::StrFormat("%.15g", value));
    } else {
      return Add(name, absl::StrCat(value));
    }
  }
  JsonObject& AddObject(absl::string_view name, const JsonObject& object) {
    return Add(name, object.Text());
  }
  // The list of what `encode` returns, a JsonObject or JSON, for each of `elements`.
  template <typename Elements, typename Encode>
  JsonObject& AddList(absl::string_view name, const Elements& elements, Encode encode) {
    const auto append = [&encode](std::string* out, const auto& element) {
      absl::StrAppend(out, JsonOf(encode(element)));
    };
    return Add(name, absl::StrCat("[", absl::StrJoin(elements, ",", append), "]"));
  }

  // On one line, without a newline.
  std::string Text() const { return absl::StrCat("{", members_, "}"); }

 private:
  static std::string JsonOf(const JsonObject& object) { return object.Text(); }
  static std::string JsonOf(std::string json) { return json; }

  JsonObject& Add(absl::string_view name, absl::string_view json) {
    absl::StrAppend(&members_, members_.empty() ? "" : ",", JsonString(name), ":", json);
    return *this;
  }

  std::string members_;
};

}  // namespace hvd::text

#endif  // BASE_TEXT_JSON_OBJECT_H_
