// Bayesian optimisation: a search for the best point of the unit cube with few noisy measurements.
#ifndef WORKER_RUNTIME_NEGOTIATION_TUNING_BAYESIAN_SEARCH_H_
#define WORKER_RUNTIME_NEGOTIATION_TUNING_BAYESIAN_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "worker_runtime/negotiation/tuning/gaussian_process.h"

namespace hvd::worker_runtime::negotiation::tuning {

// Pure and not thread-safe. Deterministic: the same seed and values give the same points.
class BayesianSearch {
 public:
  // `dimensions`: 1 or 2. `most_noise`: see GaussianProcess.
  BayesianSearch(size_t dimensions, double most_noise, uint64_t seed);

  // Returns the next point to measure: at first points that cover the cube evenly, later the point
  // with the highest expected improvement.
  Point Propose();
  // Records the value measured at a point; higher is better.
  void Observe(const Point& point, double value);
  // Returns the measured point with the highest expected value. REQUIRES: Observe was called.
  Point Best() const;
  // Returns the expected value at a point. REQUIRES: Observe was called.
  double ScoreAt(const Point& point) const;

 private:
  Point NextCovering();

  const size_t dimensions_;
  const double most_noise_;
  std::mt19937_64 random_;
  Point shift_;  // the random shift of the covering points
  size_t covering_ = 0;
  std::vector<Point> points_;
  std::vector<double> values_;
  std::optional<GaussianProcess> process_;  // fitted to points_ and values_
};

}  // namespace hvd::worker_runtime::negotiation::tuning

#endif  // WORKER_RUNTIME_NEGOTIATION_TUNING_BAYESIAN_SEARCH_H_
