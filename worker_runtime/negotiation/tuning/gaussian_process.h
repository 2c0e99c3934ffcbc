// Gaussian process regression: estimates a function from a few noisy measurements.
#ifndef WORKER_RUNTIME_NEGOTIATION_TUNING_GAUSSIAN_PROCESS_H_
#define WORKER_RUNTIME_NEGOTIATION_TUNING_GAUSSIAN_PROCESS_H_

#include <vector>

namespace hvd::worker_runtime::negotiation::tuning {

// A point of the unit cube.
using Point = std::vector<double>;

// Uses a squared exponential kernel (Rasmussen and Williams, "Gaussian Processes for Machine
// Learning", chapters 2 and 5). Pure; immutable once fitted.
class GaussianProcess {
 public:
  // Fits the process to values measured at one or more points of the same dimension. Chooses the
  // kernel's length scales and noise by maximum likelihood. `most_noise`, between 0 and 1, is the
  // largest fraction of the measurements' variance that may be attributed to noise.
  GaussianProcess(std::vector<Point> points, const std::vector<double>& values, double most_noise);

  struct Guess {
    double mean = 0;
    double deviation = 0;
  };
  Guess At(const Point& point) const;

  // Returns the expected improvement over `best` of a measurement at `point`; at least 0.
  double ExpectedImprovement(const Point& point, double best) const;

 private:
  struct Kernel {
    std::vector<double> lengths;
    double noise = 0;
  };
  // Fits with this kernel; returns its log likelihood.
  double Fit(const Kernel& kernel);
  double Covariance(const Point& a, const Point& b) const;
  std::vector<Kernel> Candidates(double most_noise) const;

  const std::vector<Point> points_;
  double center_ = 0, scale_ = 1;  // mean and standard deviation of the values
  std::vector<double> values_;     // standardised with these
  Kernel kernel_;
  std::vector<double> factor_;   // lower Cholesky factor of the covariance matrix, row by row
  std::vector<double> weights_;  // the inverse covariance matrix times values_
};

}  // namespace hvd::worker_runtime::negotiation::tuning

#endif  // WORKER_RUNTIME_NEGOTIATION_TUNING_GAUSSIAN_PROCESS_H_
