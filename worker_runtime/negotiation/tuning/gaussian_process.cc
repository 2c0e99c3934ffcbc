#include "worker_runtime/negotiation/tuning/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hvd::worker_runtime::negotiation::tuning {
namespace {

// The candidate length scales of each dimension, from "changes within a seventh of the range" to
// "hardly changes at all".
constexpr double kLengths[] = {0.15, 0.3, 0.6, 1.2};
// The candidate noises, as fractions of the variance. The smallest one keeps the matrix well
// conditioned.
constexpr double kNoises[] = {1e-4, 1e-2, 0.05, 0.2, 0.5, 0.8};
// The weight of the prior against noise. Without the prior a few measurements that look like mere
// noise would make the process flat, and so end the search.
constexpr double kNoiseDoubt = 8;

double Density(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI); }
double Distribution(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// Solves L x = b in place for a lower triangular L of n rows.
void SolveLower(const std::vector<double>& lower, std::vector<double>& x) {
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) x[i] -= lower[i * n + j] * x[j];
    x[i] /= lower[i * n + i];
  }
}

// Solves L^T x = b in place.
void SolveUpper(const std::vector<double>& lower, std::vector<double>& x) {
  const size_t n = x.size();
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) x[i] -= lower[j * n + i] * x[j];
    x[i] /= lower[i * n + i];
  }
}

// Replaces the lower triangle of a matrix by its Cholesky factor L, with L L^T = matrix.
// REQUIRES: the matrix is positive definite.
void Factorize(std::vector<double>& matrix, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= matrix[i * n + k] * matrix[j * n + k];
      matrix[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / matrix[j * n + j];
    }
  }
}

}  // namespace

GaussianProcess::GaussianProcess(std::vector<Point> points, const std::vector<double>& values,
                                 double most_noise)
    : points_(std::move(points)) {
  for (double value : values) center_ += value / static_cast<double>(values.size());
  double variance = 0;
  for (double value : values) {
    variance += (value - center_) * (value - center_) / static_cast<double>(values.size());
  }
  if (variance > 0) scale_ = std::sqrt(variance);
  for (double value : values) values_.push_back((value - center_) / scale_);
  // The maximum likelihood is searched over a small grid of kernels. With a few dozen points a fit
  // takes microseconds, and the grid needs no gradients and has no local maxima to get stuck in.
  Kernel best;
  double best_likelihood = -std::numeric_limits<double>::infinity();
  for (const Kernel& kernel : Candidates(most_noise)) {
    const double likelihood = Fit(kernel) - kNoiseDoubt * kernel.noise;
    if (likelihood <= best_likelihood) continue;
    best_likelihood = likelihood;
    best = kernel;
  }
  Fit(best);
}

std::vector<GaussianProcess::Kernel> GaussianProcess::Candidates(double most_noise) const {
  std::vector<std::vector<double>> lengths = {{}};
  for (size_t dimension = 0; dimension < points_.front().size(); ++dimension) {
    std::vector<std::vector<double>> longer;
    for (const auto& start : lengths) {
      for (double length : kLengths) {
        longer.push_back(start);
        longer.back().push_back(length);
      }
    }
    lengths = std::move(longer);
  }
  std::vector<Kernel> kernels;
  for (const auto& choice : lengths) {
    for (double noise : kNoises) {
      if (noise <= std::max(most_noise, kNoises[0])) kernels.push_back({choice, noise});
    }
  }
  return kernels;
}

double GaussianProcess::Covariance(const Point& a, const Point& b) const {
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = (a[i] - b[i]) / kernel_.lengths[i];
    distance += difference * difference;
  }
  return (1 - kernel_.noise) * std::exp(-0.5 * distance);
}

double GaussianProcess::Fit(const Kernel& kernel) {
  kernel_ = kernel;
  const size_t n = points_.size();
  factor_.assign(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) factor_[i * n + j] = Covariance(points_[i], points_[j]);
    factor_[i * n + i] += kernel.noise;
  }
  // With K = L L^T, the log likelihood is -|L^-1 y|^2 / 2 - sum(log L_ii), up to a constant, and
  // the weights are K^-1 y.
  Factorize(factor_, n);
  weights_ = values_;
  SolveLower(factor_, weights_);
  double likelihood = 0;
  for (size_t i = 0; i < n; ++i) {
    likelihood -= 0.5 * weights_[i] * weights_[i] + std::log(factor_[i * n + i]);
  }
  SolveUpper(factor_, weights_);
  return likelihood;
}

GaussianProcess::Guess GaussianProcess::At(const Point& point) const {
  std::vector<double> covariances;
  double mean = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    covariances.push_back(Covariance(point, points_[i]));
    mean += covariances[i] * weights_[i];
  }
  // The variance at the point is its prior variance less |L^-1 k|^2, k the covariances with the
  // measured points.
  SolveLower(factor_, covariances);
  double variance = 1 - kernel_.noise;
  for (double x : covariances) variance -= x * x;
  return {center_ + scale_ * mean, scale_ * std::sqrt(std::max(variance, 0.0))};
}

double GaussianProcess::ExpectedImprovement(const Point& point, double best) const {
  const Guess guess = At(point);
  const double gain = guess.mean - best;
  if (guess.deviation <= 1e-12 * scale_) return std::max(gain, 0.0);
  // E[max(0, X - best)] for a normally distributed X.
  const double z = gain / guess.deviation;
  return std::max(0.0, gain * Distribution(z) + guess.deviation * Density(z));
}

}  // namespace hvd::worker_runtime::negotiation::tuning
