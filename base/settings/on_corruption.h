// What a job does when commits show that the replicated state of a rank differs from that of the
// others. Stateless; the numbers are part of the C ABI and of the messages.
#ifndef BASE_SETTINGS_ON_CORRUPTION_H_
#define BASE_SETTINGS_ON_CORRUPTION_H_

#include <optional>
#include <string_view>
#include <utility>

namespace hvd::settings {

enum class OnCorruption : int {
  kOff = 0,    // nothing is compared
  kWarn = 1,   // says so
  kEvict = 2,  // the ranks that differ fail; the others go on from the commit before
  kEnd = 3,    // the job ends
};

inline constexpr std::pair<std::string_view, OnCorruption> kOnCorruptionNames[] = {
    {"off", OnCorruption::kOff},
    {"warn", OnCorruption::kWarn},
    {"evict", OnCorruption::kEvict},
    {"end", OnCorruption::kEnd},
};

// Returns the one of that name in lower case; nullopt: there is none.
constexpr std::optional<OnCorruption> OnCorruptionOf(std::string_view name) {
  for (const auto& [text, value] : kOnCorruptionNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

// Returns the one with that number, which comes from a message; kOff: there is none.
constexpr OnCorruption OnCorruptionOf(int number) {
  for (const auto& [text, value] : kOnCorruptionNames) {
    if (static_cast<int>(value) == number) return value;
  }
  return OnCorruption::kOff;
}

}  // namespace hvd::settings

#endif  // BASE_SETTINGS_ON_CORRUPTION_H_
