#include "tests/complexity/growth.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

// Beyond the growth itself. Twice as much of a linear cost is far from four times, and of a
// constant one from twice.
constexpr double kRoom = 1.15;

std::string PartTooFast(const char* part, Growth growth, int64_t n, int64_t once, int64_t twice) {
  const double limit = Limit(growth, n);
  if (static_cast<double>(twice) <= limit * static_cast<double>(once)) return "";
  return absl::StrCat(part, " grow from ", once, " at ", n, " to ", twice, " at ", 2 * n,
                      ", more than ", limit, " times; ");
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.what; }

double Limit(Growth growth, int64_t n) {
  const double logarithm = 1 + 1 / std::log2(static_cast<double>(n));
  switch (growth) {
    case Growth::kConstant:
      return kRoom;
    case Growth::kLogarithmic:
      return logarithm * kRoom;
    case Growth::kLinear:
      return 2 * kRoom;
    case Growth::kLinearithmic:
      return 2 * logarithm * kRoom;
    case Growth::kQuadratic:
      return 4 * kRoom;
  }
  return 0;
}

std::string TooFast(const Row& row) {
  const Cost once = row.cost(row.n);
  const Cost twice = row.cost(2 * row.n);
  return absl::StrCat(
      PartTooFast("operations", row.growths.operations, row.n, once.operations, twice.operations),
      PartTooFast("messages", row.growths.messages, row.n, once.messages, twice.messages),
      PartTooFast("bytes", row.growths.bytes, row.n, once.bytes, twice.bytes));
}

}  // namespace hvd
