// Bayesian search for the best point of the unit cube with few measurements.
#ifndef WORKER_RUNTIME_NEGOTIATION_TUNING_BAYESIAN_SEARCH_H_
#define WORKER_RUNTIME_NEGOTIATION_TUNING_BAYESIAN_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "worker_runtime/negotiation/tuning/gaussian_process.h"

namespace hvd::worker_runtime::negotiation::tuning {

// Pure and not thread-safe; the same seed and values give the same points.
class BayesianSearch {
 public:
  // `dimensions`: 1 or 2. `most_noise`: see GaussianProcess.
  BayesianSearch(size_t dimensions, double most_noise, uint64_t seed);

  // The next point to measure: at first points that cover the cube, then those of the highest
  // expected improvement.
  Point Propose();
  // The value measured at a point; higher is better.
  void Observe(const Point& point, double value);
  // The measured point that is probably the best. REQUIRES: something was measured.
  Point Best() const;
  // The expected value at a point. REQUIRES: something was measured.
  double ScoreAt(const Point& point) const;

 private:
  Point NextCovering();

  const size_t dimensions_;
  const double most_noise_;
  std::mt19937_64 random_;
  Point shift_;  // of the covering points
  size_t covering_ = 0;
  std::vector<Point> points_;
  std::vector<double> values_;
  std::optional<GaussianProcess> process_;  // fitted to them
};

}  // namespace hvd::worker_runtime::negotiation::tuning

#endif  // WORKER_RUNTIME_NEGOTIATION_TUNING_BAYESIAN_SEARCH_H_
