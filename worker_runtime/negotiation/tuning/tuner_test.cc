#include "worker_runtime/negotiation/tuning/tuner.h"

#include <cmath>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::negotiation::tuning {
namespace {

using ::testing::SizeIs;

using Speed = std::function<double(const Tunables&)>;  // bytes a second

constexpr size_t kStepBytes = 100 << 20;
const Tunables kStart{size_t{128} << 20, absl::ZeroDuration()};

// Trains with simulated time until the tuner is done; returns its samples.
std::vector<TuningSample> Train(Tuner& tuner, const Speed& speed) {
  std::vector<TuningSample> samples;
  absl::Time now = absl::UnixEpoch();
  for (int step = 0; !tuner.done() && step < 10000; ++step) {
    for (int tensor = 0; tensor < 4; ++tensor) {
      tuner.Observe(absl::StrCat("t", tensor), kStepBytes / 4, now);
      now += absl::Seconds(kStepBytes / 4 / speed(tuner.tunables()));
    }
    for (TuningSample& sample : tuner.TakeSamples()) samples.push_back(sample);
  }
  return samples;
}

double Log(const Tunables& tunables) { return std::log2(tunables.fusion_threshold_bytes); }
double Root(const Tunables& tunables) {
  return std::sqrt(absl::ToDoubleMilliseconds(tunables.cycle_time) / 10);
}

// A throughput with its maximum, 1e9, at 2^log bytes and root * root * 10 ms.
Speed Hill(double log, double root) {
  return [=](const Tunables& tunables) {
    const double x = (Log(tunables) - log) / 5, y = (Root(tunables) - root) / 0.6;
    return 1e9 * (0.3 + 0.7 * std::exp(-x * x - y * y));
  };
}

TEST(TunerTest, Observe_OnManyHills_EndsNearTheTop) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    const double log = 16.5 + 8 * (random() % 1000 / 1000.0), root = random() % 1000 / 1000.0;
    TunerOptions options;
    options.seed = seed;
    Tuner tuner(options, kStart);
    const std::vector<TuningSample> samples = Train(tuner, Hill(log, root));
    ASSERT_TRUE(tuner.done());
    EXPECT_THAT(samples, SizeIs(options.autotune.max_samples + 1));
    EXPECT_GT(Hill(log, root)(tuner.tunables()), 0.97e9) << "seed " << seed;
  }
}

TEST(TunerTest, Observe_OnNoisyHills_EndsNearTheTop) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    const double log = 16.5 + 8 * (random() % 1000 / 1000.0), root = random() % 1000 / 1000.0;
    const Speed hill = Hill(log, root);
    TunerOptions options;
    options.seed = seed;
    Tuner tuner(options, kStart);
    std::normal_distribution<double> noise(1, 0.1);
    Train(tuner, [&](const Tunables& t) { return hill(t) * std::max(0.1, noise(random)); });
    EXPECT_GT(hill(tuner.tunables()), 0.92e9) << "seed " << seed;
  }
}

TEST(TunerTest, Observe_WhenTheStartIsBest_StaysThere) {
  const Speed falling = [](const Tunables& t) {
    return 1e9 * (1 + 0.05 * (std::min(Log(t), 25.0) - 25)) / (1 + Root(t));
  };
  Tuner tuner({}, kStart);
  const auto samples = Train(tuner, falling);
  EXPECT_EQ(tuner.tunables().fusion_threshold_bytes, kStart.fusion_threshold_bytes);
  EXPECT_EQ(tuner.tunables().cycle_time, kStart.cycle_time);
}

TEST(TunerTest, Observe_WithTheSameSeed_DoesTheSame) {
  std::vector<std::vector<TuningSample>> runs;
  for (int run = 0; run < 2; ++run) {
    Tuner tuner({}, kStart);
    runs.push_back(Train(tuner, Hill(20, 0.4)));
  }
  ASSERT_EQ(runs[0].size(), runs[1].size());
  for (size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_EQ(runs[0][i].tunables.fusion_threshold_bytes,
              runs[1][i].tunables.fusion_threshold_bytes);
    EXPECT_EQ(runs[0][i].tunables.cycle_time, runs[1][i].tunables.cycle_time);
  }
}

TEST(TunerTest, Observe_WithAFixedCycleTime_TunesOnlyTheThreshold) {
  TunerOptions options;
  options.tune_cycle_time = false;
  Tuner tuner(options, {size_t{1} << 20, absl::Milliseconds(2)});
  const auto samples = Train(tuner, Hill(19, 0.4));
  for (const TuningSample& sample : samples) {
    EXPECT_EQ(sample.tunables.cycle_time, absl::Milliseconds(2));
  }
  EXPECT_NEAR(Log(tuner.tunables()), 19, 1);
}

TEST(TunerTest, Observe_WithAFixedThreshold_TunesOnlyTheCycleTime) {
  TunerOptions options;
  options.tune_fusion_threshold = false;
  Tuner tuner(options, {777, absl::ZeroDuration()});
  const auto samples = Train(tuner, [](const Tunables& t) { return 1e9 / (1.1 - Root(t)); });
  for (const TuningSample& sample : samples) {
    EXPECT_EQ(sample.tunables.fusion_threshold_bytes, 777u);
  }
  EXPECT_GT(Root(tuner.tunables()), 0.95);
}

TEST(TunerTest, Observe_DuringWarmUp_ChangesAndNotesNothing) {
  TunerOptions options;
  options.autotune.warmup_samples = 2;
  options.autotune.steps_per_sample = 5;
  Tuner tuner(options, kStart);
  absl::Time now = absl::UnixEpoch();
  // A step ends at the first tensor of the next one.
  for (int step = 0; step < 15; ++step) {
    tuner.Observe("t", 1000, now += absl::Seconds(1));
    EXPECT_EQ(tuner.tunables().fusion_threshold_bytes, kStart.fusion_threshold_bytes);
    EXPECT_THAT(tuner.TakeSamples(), SizeIs(0));
  }
  tuner.Observe("t", 1000, now += absl::Seconds(1));
  const auto samples = tuner.TakeSamples();
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_DOUBLE_EQ(samples[0].score, 1000);
  EXPECT_EQ(samples[0].tunables.fusion_threshold_bytes, kStart.fusion_threshold_bytes);
}

TEST(TunerTest, Observe_WithAPauseInASample_ScoresAsIfThereWereNone) {
  TunerOptions options;
  options.autotune.warmup_samples = 0;
  Tuner tuner(options, kStart);
  absl::Time now = absl::UnixEpoch();
  for (size_t step = 0; step <= options.autotune.steps_per_sample; ++step) {
    tuner.Observe("t", 1000, now);
    now += step == 4 ? absl::Hours(1) : absl::Seconds(1);
  }
  const auto samples = tuner.TakeSamples();
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_DOUBLE_EQ(samples[0].score, 1000);
}

TEST(TunerTest, Observe_NamesNeverRepeat_StillEndsSamples) {
  TunerOptions options;
  options.autotune.warmup_samples = 0;
  options.autotune.steps_per_sample = 1;
  Tuner tuner(options, kStart);
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 20000; ++i) {
    tuner.Observe(absl::StrCat("noname.", i), 1, now += absl::Seconds(1));
  }
  EXPECT_THAT(tuner.TakeSamples(), SizeIs(1));
}

TEST(TuningLogLineTest, ASample_IsALineOfTheHeadersColumns) {
  const TuningSample sample{{3 << 19, absl::Microseconds(2500)}, 1.5e9, false};
  EXPECT_EQ(TuningLogLine(sample, true), "0,0,0,1,2.5,1.5,1500");
}

}  // namespace
}  // namespace hvd::worker_runtime::negotiation::tuning
