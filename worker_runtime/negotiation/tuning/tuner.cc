#include "worker_runtime/negotiation/tuning/tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::worker_runtime::negotiation::tuning {
namespace {

// The searched range of the threshold, as powers of two. There are no batches above 2^25 bytes
// (kLargestBatchBytes).
constexpr double kLeastThresholdLog = 16, kMostThresholdLog = 25;
constexpr absl::Duration kMostCycleTime = absl::Milliseconds(10);
// A step also ends after this many tensors: a script whose tensor names never repeat would
// otherwise never end one.
constexpr size_t kMostTensorsInStep = 10000;

double Clamp(double x) { return std::min(std::max(x, 0.0), 1.0); }

size_t CountDimensions(const TunerOptions& options) {
  return (options.tune_fusion_threshold ? 1 : 0) + (options.tune_cycle_time ? 1 : 0);
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Tuner::Tuner(const TunerOptions& options, const Tunables& start)
    : options_(options),
      start_(start),
      current_(start),
      search_(CountDimensions(options), options.autotune.noise, options.seed),
      point_(PointOf(start)),
      samples_(-static_cast<int64_t>(options.autotune.warmup_samples)) {}

// Maps a point of the unit cube to parameters. The threshold is on a logarithmic scale. The cycle
// time is on a square-root scale, because small differences matter where it is small.
Tunables Tuner::AtPoint(const Point& point) const {
  Tunables tunables = start_;
  size_t i = 0;
  if (options_.tune_fusion_threshold) {
    const double log = kLeastThresholdLog + point[i++] * (kMostThresholdLog - kLeastThresholdLog);
    tunables.fusion_threshold_bytes = static_cast<size_t>(std::llround(std::exp2(log)));
  }
  if (options_.tune_cycle_time) {
    tunables.cycle_time = absl::Trunc(point[i] * point[i] * kMostCycleTime, absl::Microseconds(1));
  }
  return tunables;
}

Point Tuner::PointOf(const Tunables& tunables) const {
  Point point;
  if (options_.tune_fusion_threshold) {
    const double log = std::log2(std::max<double>(1, tunables.fusion_threshold_bytes));
    point.push_back(Clamp((log - kLeastThresholdLog) / (kMostThresholdLog - kLeastThresholdLog)));
  }
  if (options_.tune_cycle_time) {
    point.push_back(Clamp(std::sqrt(absl::FDivDuration(tunables.cycle_time, kMostCycleTime))));
  }
  return point;
}

void Tuner::Observe(absl::string_view name, size_t bytes, absl::Time now) {
  if (done_) return;
  const bool again = !step_.insert(std::string(name)).second;
  if (again || step_.size() > kMostTensorsInStep) {
    EndStep(now);
    step_ = {std::string(name)};
  }
  step_began_ = std::min(step_began_, now);
  step_bytes_ += bytes;
}

void Tuner::EndStep(absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(now - step_began_);
  if (seconds > 0) rates_.push_back(static_cast<double>(step_bytes_) / seconds);
  step_bytes_ = 0;
  step_began_ = now;
  if (rates_.size() >= options_.autotune.steps_per_sample) EndSample();
}

void Tuner::EndSample() {
  const double score = Median(std::exchange(rates_, {}));
  if (++samples_ <= 0) return;
  samples_taken_.push_back({current_, score, false});
  search_.Observe(point_, score);
  done_ = samples_ >= static_cast<int64_t>(options_.autotune.max_samples);
  point_ = done_ ? search_.Best() : search_.Propose();
  // The start parameters may lie outside the searched range, so AtPoint can't always return them.
  current_ = point_ == PointOf(start_) ? start_ : AtPoint(point_);
  if (done_) samples_taken_.push_back({current_, search_.ScoreAt(point_), true});
}

std::vector<TuningSample> Tuner::TakeSamples() { return std::exchange(samples_taken_, {}); }

std::string TuningLogLine(const TuningSample& sample, bool cache_enabled) {
  const double threshold_mb =
      static_cast<double>(sample.tunables.fusion_threshold_bytes) / (1 << 20);
  return absl::StrCat("0,0,0,", cache_enabled ? 1 : 0, ",",
                      absl::ToDoubleMilliseconds(sample.tunables.cycle_time), ",", threshold_mb,
                      ",", sample.score / 1e6);
}

}  // namespace hvd::worker_runtime::negotiation::tuning
