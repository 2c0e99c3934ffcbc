// Gaussian process regression: estimates between a few noisy measurements.
#ifndef WORKER_RUNTIME_NEGOTIATION_TUNING_GAUSSIAN_PROCESS_H_
#define WORKER_RUNTIME_NEGOTIATION_TUNING_GAUSSIAN_PROCESS_H_

#include <vector>

namespace hvd::worker_runtime::negotiation::tuning {

// A point of the unit cube.
using Point = std::vector<double>;

// Uses a squared exponential kernel. Pure; immutable once fitted.
class GaussianProcess {
 public:
  // One or more points of the same dimension and the values measured there. Lengths and noise are
  // chosen by likelihood; `most_noise`, 0..1, is the largest part of the measurements' variance
  // that may be attributed to noise.
  GaussianProcess(std::vector<Point> points, const std::vector<double>& values, double most_noise);

  struct Guess {
    double mean = 0;
    double deviation = 0;
  };
  Guess At(const Point& point) const;

  // The expected gain over `best` of a measurement at `point`; at least 0.
  double ExpectedImprovement(const Point& point, double best) const;

 private:
  struct Kernel {
    std::vector<double> lengths;
    double noise = 0;
  };
  // Its log likelihood; keeps the factors.
  double Fit(const Kernel& kernel);
  double Covariance(const Point& a, const Point& b) const;
  std::vector<Kernel> Candidates(double most_noise) const;

  const std::vector<Point> points_;
  double center_ = 0, scale_ = 1;  // of the values
  std::vector<double> values_;     // centered and scaled
  Kernel kernel_;
  std::vector<double> factor_;   // lower triangle of the covariances' Cholesky factor, by rows
  std::vector<double> weights_;  // inverse covariance times values
};

}  // namespace hvd::worker_runtime::negotiation::tuning

#endif  // WORKER_RUNTIME_NEGOTIATION_TUNING_GAUSSIAN_PROCESS_H_
