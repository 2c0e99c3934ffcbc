#include "worker_runtime/negotiation/tuning/bayesian_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hvd::worker_runtime::negotiation::tuning {
namespace {

// The number of covering points per dimension, measured before the regression is used.
constexpr size_t kCoveringPerDimension = 3;
// The expected improvement is maximised over a grid with this many steps along each side.
constexpr int kGridSteps = 25;

// The radical inverse of `index`: its digits to `base`, mirrored at the point. In coprime bases
// these numbers form the Halton sequence, which covers the unit cube evenly.
double RadicalInverse(size_t index, size_t base) {
  double result = 0, digit = 1;
  for (; index > 0; index /= base) {
    digit /= static_cast<double>(base);
    result += digit * static_cast<double>(index % base);
  }
  return result;
}

// All points of a grid over the unit cube.
std::vector<Point> Grid(size_t dimensions) {
  std::vector<Point> grid = {{}};
  for (size_t dimension = 0; dimension < dimensions; ++dimension) {
    std::vector<Point> finer;
    for (const Point& start : grid) {
      for (int step = 0; step <= kGridSteps; ++step) {
        finer.push_back(start);
        finer.back().push_back(static_cast<double>(step) / kGridSteps);
      }
    }
    grid = std::move(finer);
  }
  return grid;
}

}  // namespace

BayesianSearch::BayesianSearch(size_t dimensions, double most_noise, uint64_t seed)
    : dimensions_(dimensions), most_noise_(most_noise), random_(seed) {
  // 53 random bits, scaled to [0, 1). std::uniform_real_distribution would give different numbers
  // with different standard libraries.
  for (size_t i = 0; i < dimensions; ++i) {
    shift_.push_back(static_cast<double>(random_() >> 11) * 0x1p-53);
  }
}

Point BayesianSearch::NextCovering() {
  constexpr size_t kBases[] = {2, 3};
  ++covering_;
  Point point;
  for (size_t i = 0; i < dimensions_; ++i) {
    point.push_back(std::fmod(RadicalInverse(covering_, kBases[i]) + shift_[i], 1.0));
  }
  return point;
}

Point BayesianSearch::Propose() {
  if (points_.size() <= kCoveringPerDimension * dimensions_) return NextCovering();
  // Improvement is measured from the estimate at the best point, not from the best measurement,
  // which may owe its value to noise.
  const double best = ScoreAt(Best());
  Point proposal;
  double most = 0;
  for (Point& point : Grid(dimensions_)) {
    const double gain = process_->ExpectedImprovement(point, best);
    if (gain <= most) continue;
    most = gain;
    proposal = std::move(point);
  }
  return proposal.empty() ? NextCovering() : proposal;
}

void BayesianSearch::Observe(const Point& point, double value) {
  points_.push_back(point);
  values_.push_back(value);
  process_.emplace(points_, values_, most_noise_);
}

Point BayesianSearch::Best() const {
  return *std::max_element(points_.begin(), points_.end(),
                           [&](const Point& a, const Point& b) { return ScoreAt(a) < ScoreAt(b); });
}

double BayesianSearch::ScoreAt(const Point& point) const { return process_->At(point).mean; }

}  // namespace hvd::worker_runtime::negotiation::tuning
