#include "rendezvous/c_api/job_options.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace hvd::rendezvous::c_api {
namespace {

using Options = hvd_rendezvous_job_options;

policy::JobSpec SpecOf(const Options& options) {
  absl::StatusOr<policy::JobSpec> spec = ToJobSpec(options);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(policy::JobSpec());
}

// What is wrong after `change`.
template <typename Change>
std::string Refusal(Change change) {
  Options options = DefaultJobOptions();
  change(options);
  return std::string(ToJobSpec(options).status().message());
}

TEST(JobOptionsTest, NpAlone_IsAJobOfFixedSize) {
  Options options = DefaultJobOptions();
  options.np = 3;
  const policy::JobSpec spec = SpecOf(options);
  EXPECT_EQ(spec.min_workers, 3);
  EXPECT_EQ(spec.max_workers, 3);
  EXPECT_FALSE(spec.elastic.has_value());
}

TEST(JobOptionsTest, ToSizes_IsTheWayBack) {
  Options options = DefaultJobOptions();
  options.np = 3;
  EXPECT_EQ(ToSizes(SpecOf(options)).np, 3);
  EXPECT_EQ(ToSizes(SpecOf(options)).min_np, 0);
  options.min_np = 2;
  const Sizes sizes = ToSizes(SpecOf(options));
  EXPECT_EQ(sizes.np, 3);
  EXPECT_EQ(sizes.min_np, 2);
  EXPECT_EQ(sizes.max_np, 0) << "any number";
  options.max_np = 5;
  EXPECT_EQ(ToSizes(SpecOf(options)).max_np, 5);
}

TEST(JobOptionsTest, MinOrMax_MakeItElastic) {
  Options options = DefaultJobOptions();
  options.np = 2;
  options.min_np = 1;
  policy::JobSpec spec = SpecOf(options);
  EXPECT_EQ(spec.min_workers, 1);
  EXPECT_EQ(spec.start_workers, 2);
  EXPECT_GT(spec.max_workers, 1000);
  ASSERT_TRUE(spec.elastic.has_value());
  options.min_np = 0;
  options.max_np = 4;
  spec = SpecOf(options);
  EXPECT_EQ(spec.min_workers, 2);
  EXPECT_EQ(spec.max_workers, 4);
}

TEST(JobOptionsTest, Defaults_AreThoseOfTheSpec) {
  Options options = DefaultJobOptions();
  options.max_np = 2;
  const policy::ElasticSpec made = *SpecOf(options).elastic;
  const policy::ElasticSpec usual;
  EXPECT_EQ(made.elastic_timeout, usual.elastic_timeout);
  EXPECT_EQ(made.rejoin_timeout, usual.rejoin_timeout);
  EXPECT_EQ(made.join_delay, usual.join_delay);
  EXPECT_EQ(made.drain_grace, usual.drain_grace);
  EXPECT_EQ(made.budget.failures, usual.budget.failures);
  EXPECT_EQ(made.budget.window, usual.budget.window);
  EXPECT_EQ(made.failures_without_progress, usual.failures_without_progress);
  EXPECT_FALSE(made.reset_limit.has_value());
  EXPECT_FALSE(made.cooldown.has_value());
  EXPECT_EQ(SpecOf(options).failure_grace, policy::JobSpec().failure_grace);
}

TEST(JobOptionsTest, EveryOptionGetsToItsPlace) {
  Options options = DefaultJobOptions();
  options.max_np = 2;
  options.spares = 1;
  options.start_timeout = 11;
  options.failure_grace = 12;
  options.encrypt_data = 1;
  options.elastic_timeout = 13;
  options.rejoin_timeout = 14;
  options.join_delay = 15;
  options.drain_grace = 16;
  options.max_failures = 17;
  options.failure_window = 18;
  options.failures_without_progress = 19;
  options.reset_limit = 20;
  options.cooldown = 21;
  options.cooldown_longest = 22;
  const policy::JobSpec spec = SpecOf(options);
  EXPECT_EQ(spec.start_timeout, absl::Seconds(11));
  EXPECT_EQ(spec.failure_grace, absl::Seconds(12));
  EXPECT_TRUE(spec.encrypt_data);
  EXPECT_EQ(spec.elastic->spares, 1);
  EXPECT_EQ(spec.elastic->elastic_timeout, absl::Seconds(13));
  EXPECT_EQ(spec.elastic->rejoin_timeout, absl::Seconds(14));
  EXPECT_EQ(spec.elastic->join_delay, absl::Seconds(15));
  EXPECT_EQ(spec.elastic->drain_grace, absl::Seconds(16));
  EXPECT_EQ(spec.elastic->budget.failures, 17);
  EXPECT_EQ(spec.elastic->budget.window, absl::Seconds(18));
  EXPECT_EQ(spec.elastic->failures_without_progress, 19);
  EXPECT_EQ(spec.elastic->reset_limit, 20);
  EXPECT_EQ(spec.elastic->cooldown->shortest, absl::Seconds(21));
  EXPECT_EQ(spec.elastic->cooldown->longest, absl::Seconds(22));
}

TEST(JobOptionsTest, WhatCannotBeRight_IsNamed) {
  EXPECT_EQ(Refusal([](Options& o) { o.np = 0; }), "np is 0, and must be from 1 to 1048576");
  EXPECT_EQ(Refusal([](Options& o) { o.min_np = 2; }), "min_np is 2, and must be from 0 to 1");
  EXPECT_EQ(Refusal([](Options& o) {
              o.np = 4;
              o.max_np = 3;
            }),
            "max_np is 3, and must be from 4 to 1048576");
  EXPECT_EQ(Refusal([](Options& o) { o.spares = 1; }),
            "spares needs max_np: without it every slot is in use");
  EXPECT_EQ(Refusal([](Options& o) { o.start_timeout = -1; }),
            "start_timeout is -1 seconds, and must be from 0 to 604800");
  EXPECT_EQ(Refusal([](Options& o) {
              o.max_np = 1;
              o.join_delay = std::numeric_limits<double>::quiet_NaN();
            }),
            "join_delay is nan seconds, and must be from 0 to 604800");
  EXPECT_EQ(Refusal([](Options& o) {
              o.max_np = 1;
              o.cooldown = 61;
            }),
            "cooldown_longest must not be less than cooldown");
}

TEST(JobOptionsTest, OlderCaller_GetsTheDefaultsOfWhatItDoesNotKnow) {
  Options options = DefaultJobOptions();
  options.np = 5;
  options.size = offsetof(Options, np) + sizeof(options.np);
  Options whole = DefaultJobOptions();
  whole.max_np = 9;
  const auto made = WholeStruct("options", options, whole, options.size);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->np, 5);
  EXPECT_EQ(made->max_np, 9);
  EXPECT_EQ(made->size, sizeof(Options));
}

TEST(JobOptionsTest, SizeOfNoVersion_IsRefused) {
  Options options = DefaultJobOptions();
  options.size = 0;
  EXPECT_FALSE(WholeJobOptions(options).ok());
  options.size = sizeof(options) + 8;
  const std::string text(WholeJobOptions(options).status().message());
  EXPECT_EQ(text.find("hvd_rendezvous_job_options.size is 200; this library takes 176 to 192"), 0)
      << text;
}

}  // namespace
}  // namespace hvd::rendezvous::c_api
