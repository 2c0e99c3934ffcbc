// The check that a cost does not grow faster than it may when a job doubles.
#ifndef TESTS_COMPLEXITY_GROWTH_H_
#define TESTS_COMPLEXITY_GROWTH_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace hvd {

// What something costs. 0: it is not counted.
struct Cost {
  int64_t operations = 0;  // see operation_count.h
  int64_t messages = 0;
  int64_t bytes = 0;
};

enum class Growth { kConstant, kLogarithmic, kLinear, kLinearithmic, kQuadratic };

// How each part of a cost may grow.
struct Growths {
  Growth operations;
  Growth messages = Growth::kConstant;
  Growth bytes = Growth::kConstant;
};

// A row of the table: something that is done in jobs of size `n` and twice that.
struct Row {
  std::string what;
  int64_t n;
  Growths growths;
  std::function<Cost(int64_t n)> cost;
};
std::ostream& operator<<(std::ostream& out, const Row& row);

// Returns how often more a cost may be at 2n than at n, with room for lower-order terms.
double Limit(Growth growth, int64_t n);

// Returns what grows too fast, with both costs; empty: nothing.
std::string TooFast(const Row& row);

}  // namespace hvd

#endif  // TESTS_COMPLEXITY_GROWTH_H_
