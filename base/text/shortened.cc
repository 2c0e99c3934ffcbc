#include "base/text/shortened.h"

#include "absl/strings/str_cat.h"

namespace hvd::text {
namespace {

// Whether the byte is inside a character of UTF-8, not its first one.
bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string Shortened(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  // Exceptions say what happened at the beginning, and often the values at the end.
  size_t head = most - most / 4;
  size_t tail = text.size() - most / 4;
  while (head > 0 && Continues(text[head])) --head;
  while (tail < text.size() && Continues(text[tail])) ++tail;
  return absl::StrCat(text.substr(0, head), " ... (", tail - head, " bytes left out) ... ",
                      text.substr(tail));
}

}  // namespace hvd::text
