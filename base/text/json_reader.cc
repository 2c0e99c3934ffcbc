#include "base/text/json_reader.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"

namespace hvd::text {
namespace {

constexpr int kDeepest = 32;

void AppendUtf8(uint32_t code, std::string& out) {
  const auto tail = [&out, code](int shift) {
    out += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

// Reads a text from its beginning, once.
class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  absl::StatusOr<JsonValue> Read() {
    if (!IsUtf8(text_)) return Wrong("this is not UTF-8");
    ASSIGN_OR_RETURN(JsonValue value, ReadValue(0));
    SkipSpace();
    if (!AtEnd()) return Wrong("nothing may follow the end of the value");
    return value;
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  JsonPlace Place() const { return {line_, static_cast<int>(at_ - line_begin_) + 1}; }
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(Place().Text(), ": ", what));
  }
  void SkipSpace() {
    while (!AtEnd() && absl::StrContains(" \t\r\n", text_[at_])) {
      if (text_[at_++] != '\n') continue;
      ++line_;
      line_begin_ = at_;
    }
  }
  bool Consume(char wanted) {
    SkipSpace();
    if (AtEnd() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  absl::StatusOr<JsonValue> ReadValue(int depth) {
    SkipSpace();
    if (AtEnd()) return Wrong("the text ends where a value is expected");
    JsonValue value;
    value.place = Place();
    switch (Peek()) {
      case '{':
      case '[':
        if (depth >= kDeepest) return Wrong("too many lists and objects contain each other");
        if (Peek() == '{') {
          RETURN_IF_ERROR(ReadObject(depth, value));
        } else {
          RETURN_IF_ERROR(ReadList(depth, value));
        }
        return value;
      case '"': {
        value.kind = JsonValue::Kind::kString;
        ASSIGN_OR_RETURN(value.text, ReadString());
        return value;
      }
      default:
        RETURN_IF_ERROR(ReadScalar(value));
        return value;
    }
  }

  absl::Status ReadObject(int depth, JsonValue& object) {
    object.kind = JsonValue::Kind::kObject;
    ++at_;
    if (Consume('}')) return absl::OkStatus();
    std::set<std::string> names;  // Find would make a large object slow
    do {
      SkipSpace();
      JsonMember member;
      member.place = Place();
      if (Peek() != '"') return Wrong("a name in double quotes is expected");
      ASSIGN_OR_RETURN(member.name, ReadString());
      if (!names.insert(member.name).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(member.place.Text(), ": ", JsonString(member.name), " is given twice"));
      }
      if (!Consume(':')) return Wrong("a colon is expected");
      ASSIGN_OR_RETURN(member.value, ReadValue(depth + 1));
      object.members.push_back(std::move(member));
    } while (Consume(','));
    return Consume('}') ? absl::OkStatus() : Wrong("a comma or } is expected");
  }

  absl::Status ReadList(int depth, JsonValue& list) {
    list.kind = JsonValue::Kind::kList;
    ++at_;
    if (Consume(']')) return absl::OkStatus();
    do {
      ASSIGN_OR_RETURN(JsonValue element, ReadValue(depth + 1));
      list.elements.push_back(std::move(element));
    } while (Consume(','));
    return Consume(']') ? absl::OkStatus() : Wrong("a comma or ] is expected");
  }

  absl::StatusOr<std::string> ReadString() {
    ++at_;
    std::string result;
    while (true) {
      if (AtEnd() || text_[at_] == '\n') return Wrong("the closing quote is missing");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return Wrong("a control character in a string");
      if (c == '\\') {
        RETURN_IF_ERROR(ReadEscape(result));
        continue;
      }
      ++at_;
      if (c == '"') return result;
      result += c;
    }
  }

  absl::Status ReadEscape(std::string& out) {
    constexpr absl::string_view kNames = "\"\\/bfnrt";
    constexpr absl::string_view kMeant = "\"\\/\b\f\n\r\t";
    const char name = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    const size_t known = name == '\0' ? kNames.npos : kNames.find(name);
    if (known != kNames.npos) {
      out += kMeant[known];
      at_ += 2;
      return absl::OkStatus();
    }
    if (name != 'u') return Wrong("there is no such escape");
    const std::optional<uint32_t> code = ReadCode();
    if (!code.has_value()) return Wrong("\\u needs four hexadecimal digits");
    uint32_t whole = *code;
    if (*code >= 0xd800 && *code < 0xdc00) {  // the first half of a pair
      const std::optional<uint32_t> low =
          absl::StartsWith(text_.substr(at_), "\\u") ? ReadCode() : std::nullopt;
      if (!low.has_value() || *low < 0xdc00 || *low >= 0xe000)
        return Wrong("half of a surrogate pair");
      whole = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
    } else if (*code >= 0xdc00 && *code < 0xe000) {
      return Wrong("half of a surrogate pair");
    }
    AppendUtf8(whole, out);
    return absl::OkStatus();
  }

  // Of "\u1234", which it takes; nullopt, and takes nothing: it is none.
  std::optional<uint32_t> ReadCode() {
    const absl::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), 4);
    uint32_t code = 0;
    const bool is_hex = digits.size() == 4 && std::all_of(digits.begin(), digits.end(), [](char c) {
                          return absl::ascii_isxdigit(c);
                        });
    if (!is_hex || !absl::SimpleHexAtoi(digits, &code)) return std::nullopt;
    at_ += 6;
    return code;
  }

  absl::Status ReadScalar(JsonValue& value) {
    size_t end = at_;
    while (end < text_.size() &&
           (absl::ascii_isalnum(text_[end]) || absl::StrContains("+-.", text_[end]))) {
      ++end;
    }
    const absl::string_view word = text_.substr(at_, end - at_);
    if (word == "null") {
      value.kind = JsonValue::Kind::kNull;
    } else if (word == "true" || word == "false") {
      value.kind = JsonValue::Kind::kBool;
      value.boolean = word == "true";
    } else if (IsNumber(word) && absl::SimpleAtod(word, &value.number)) {
      value.kind = JsonValue::Kind::kNumber;
    } else {
      return Wrong(
          "a value is expected: a number, a string, true, false, null, a list or an object");
    }
    at_ = end;
    return absl::OkStatus();
  }

  // By JSON's grammar: no leading zero or plus, digits on both sides of the point.
  static bool IsNumber(absl::string_view word) {
    const auto digits = [&word] {
      const size_t count =
          std::find_if_not(word.begin(), word.end(), absl::ascii_isdigit) - word.begin();
      word.remove_prefix(count);
      return count > 0;
    };
    if (absl::StartsWith(word, "-")) word.remove_prefix(1);
    const bool is_zero = absl::StartsWith(word, "0");
    if (is_zero && word.size() > 1 && absl::ascii_isdigit(word[1])) return false;
    if (!digits()) return false;
    if (absl::StartsWith(word, ".")) {
      word.remove_prefix(1);
      if (!digits()) return false;
    }
    if (!word.empty() && (word[0] == 'e' || word[0] == 'E')) {
      word.remove_prefix(1);
      if (!word.empty() && (word[0] == '+' || word[0] == '-')) word.remove_prefix(1);
      if (!digits()) return false;
    }
    return word.empty();
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_begin_ = 0;
};

}  // namespace

std::string JsonPlace::Text() const { return absl::StrCat(line, ":", column); }

const JsonValue* JsonValue::Find(absl::string_view name) const {
  for (const JsonMember& member : members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

absl::StatusOr<JsonValue> ReadJson(absl::string_view text) { return Reader(text).Read(); }

}  // namespace hvd::text
