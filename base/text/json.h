// Encoders of JSON values. Pure.
#ifndef BASE_TEXT_JSON_H_
#define BASE_TEXT_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::text {

bool IsUtf8(absl::string_view text);

// Encodes any bytes as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(absl::string_view text);

// Encodes a time as a JSON string: "2026-11-21T09:53:33.000000Z".
std::string JsonTime(absl::Time time);

}  // namespace hvd::text

#endif  // BASE_TEXT_JSON_H_
