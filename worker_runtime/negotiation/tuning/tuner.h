// The autotuner of fusion threshold and cycle time: searches for the highest throughput while the
// job trains.
#ifndef WORKER_RUNTIME_NEGOTIATION_TUNING_TUNER_H_
#define WORKER_RUNTIME_NEGOTIATION_TUNING_TUNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/settings/runtime_env.h"
#include "worker_runtime/negotiation/tuning/bayesian_search.h"

namespace hvd::worker_runtime::negotiation::tuning {

// The tunable parameters.
struct Tunables {
  size_t fusion_threshold_bytes = 0;
  absl::Duration cycle_time = absl::ZeroDuration();
};

struct TunerOptions {
  settings::AutotuneEnv autotune;
  bool tune_fusion_threshold = true;
  bool tune_cycle_time = true;
  uint64_t seed = 1;
};

// One measurement.
struct TuningSample {
  Tunables tunables;
  double score = 0;      // bytes a second
  bool is_best = false;  // the last sample: the result of the search
};

// Observes the tensors that run, and sets the parameters for later ones. A step ends when a tensor
// of the step comes again. The score of a sample is the median over its steps, so that one step
// with a pause (evaluation, a checkpoint) does not matter. Pure and not thread-safe.
class Tuner {
 public:
  // Measures the parameters `start` first. REQUIRES: at least one parameter is tuned.
  Tuner(const TunerOptions& options, const Tunables& start);

  // The parameters to use from now on.
  const Tunables& tunables() const { return current_; }
  // Whether tunables() is final.
  bool done() const { return done_; }

  // Records that a tensor of `bytes` runs at `now`.
  void Observe(absl::string_view name, size_t bytes, absl::Time now);

  // Returns the samples since the last call.
  std::vector<TuningSample> TakeSamples();

 private:
  void EndStep(absl::Time now);
  void EndSample();
  Tunables AtPoint(const Point& point) const;
  Point PointOf(const Tunables& tunables) const;

  const TunerOptions options_;
  const Tunables start_;
  Tunables current_;
  BayesianSearch search_;
  Point point_;      // of current_
  int64_t samples_;  // the number of samples; negative during the warm-up
  bool done_ = false;

  absl::flat_hash_set<std::string> step_;  // the tensors of the current step
  size_t step_bytes_ = 0;
  absl::Time step_began_ = absl::InfiniteFuture();
  std::vector<double> rates_;  // bytes a second in each step of the current sample
  std::vector<TuningSample> samples_taken_;
};

// The log file's header, with Horovod's columns, and in its units: the threshold in MB, the score
// in millions of bytes a second. The first three are not tuned here.
inline constexpr absl::string_view kTuningLogHeader =
    "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,"
    "tensor_fusion_threshold,score";
std::string TuningLogLine(const TuningSample& sample, bool cache_enabled);

}  // namespace hvd::worker_runtime::negotiation::tuning

#endif  // WORKER_RUNTIME_NEGOTIATION_TUNING_TUNER_H_
