#include "rendezvous/c_api/job_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::rendezvous::c_api {
namespace {

// The limit of times that the header states. It also keeps every sum with the clock in range.
constexpr double kWeek = 7 * 86400;
// The size of the structure in the first version of the ABI.
constexpr size_t kFirstSize = offsetof(hvd_rendezvous_job_options, notice) + sizeof(void*);

absl::Status CheckNumber(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, ", and must be from ", low, " to ", high));
}

absl::Status CheckSizes(const hvd_rendezvous_job_options& options) {
  RETURN_IF_ERROR(CheckNumber("np", options.np, 1, kMostWorkers));
  RETURN_IF_ERROR(CheckNumber("min_np", options.min_np, 0, options.np));
  RETURN_IF_ERROR(CheckNumber("spares", options.spares, 0, kMostWorkers));
  if (options.max_np != 0) {
    RETURN_IF_ERROR(CheckNumber("max_np", options.max_np, options.np, kMostWorkers));
  } else if (options.spares > 0) {
    return absl::InvalidArgumentError("spares needs max_np: without it every slot is in use");
  }
  return absl::OkStatus();
}

absl::StatusOr<policy::ElasticSpec> ToElasticSpec(const hvd_rendezvous_job_options& options) {
  policy::ElasticSpec spec;
  RETURN_IF_ERROR(CheckNumber("max_failures", options.max_failures, 0, kMostWorkers));
  RETURN_IF_ERROR(
      CheckNumber("failures_without_progress", options.failures_without_progress, 0, kMostWorkers));
  RETURN_IF_ERROR(CheckNumber("reset_limit", options.reset_limit, -1, kMostWorkers));
  spec.spares = options.spares;
  ASSIGN_OR_RETURN(spec.elastic_timeout, ToDuration("elastic_timeout", options.elastic_timeout));
  ASSIGN_OR_RETURN(spec.rejoin_timeout, ToDuration("rejoin_timeout", options.rejoin_timeout));
  ASSIGN_OR_RETURN(spec.join_delay, ToDuration("join_delay", options.join_delay));
  ASSIGN_OR_RETURN(spec.drain_grace, ToDuration("drain_grace", options.drain_grace));
  ASSIGN_OR_RETURN(spec.budget.window, ToDuration("failure_window", options.failure_window));
  spec.budget.failures = options.max_failures;
  spec.failures_without_progress = options.failures_without_progress;
  if (options.reset_limit >= 0) spec.reset_limit = options.reset_limit;
  // Before cooldown_longest is looked at, which has a default and means nothing without a cooldown.
  if (options.cooldown == 0) return spec;
  policy::Cooldown cooldown;
  ASSIGN_OR_RETURN(cooldown.shortest, ToDuration("cooldown", options.cooldown));
  ASSIGN_OR_RETURN(cooldown.longest, ToDuration("cooldown_longest", options.cooldown_longest));
  if (cooldown.longest < cooldown.shortest) {
    return absl::InvalidArgumentError("cooldown_longest must not be less than cooldown");
  }
  spec.cooldown = cooldown;
  return spec;
}

}  // namespace

hvd_rendezvous_job_options DefaultJobOptions() {
  hvd_rendezvous_job_options options = {};
  options.size = sizeof(options);
  options.np = 1;
  options.start_timeout = 600;
  options.failure_grace = 1;
  options.elastic_timeout = 600;
  options.rejoin_timeout = 60;
  options.join_delay = 0.2;
  options.drain_grace = 30;
  options.max_failures = 20;
  options.failure_window = 600;
  options.failures_without_progress = 3;
  options.reset_limit = -1;
  options.cooldown_longest = 60;
  options.reattach_timeout = 30;
  return options;
}

absl::StatusOr<hvd_rendezvous_job_options> WholeJobOptions(
    const hvd_rendezvous_job_options& given) {
  return WholeStruct("hvd_rendezvous_job_options", given, DefaultJobOptions(), kFirstSize);
}

absl::StatusOr<policy::JobSpec> ToJobSpec(const hvd_rendezvous_job_options& options) {
  RETURN_IF_ERROR(CheckSizes(options));
  policy::JobSpec spec;
  spec.min_workers = spec.max_workers = options.np;
  ASSIGN_OR_RETURN(spec.start_timeout, ToDuration("start_timeout", options.start_timeout));
  ASSIGN_OR_RETURN(spec.failure_grace, ToDuration("failure_grace", options.failure_grace));
  ASSIGN_OR_RETURN(spec.reattach_timeout, ToDuration("reattach_timeout", options.reattach_timeout));
  spec.encrypt_data = options.encrypt_data != 0;
  // As for horovodrun: one of the two limits makes a job elastic.
  if (options.min_np == 0 && options.max_np == 0) return spec;
  if (options.min_np != 0) spec.min_workers = options.min_np;
  spec.max_workers = options.max_np != 0 ? options.max_np : kMostWorkers;
  spec.start_workers = options.np;
  ASSIGN_OR_RETURN(spec.elastic, ToElasticSpec(options));
  return spec;
}

Sizes ToSizes(const policy::JobSpec& spec) {
  if (!spec.elastic.has_value()) return {spec.max_workers, 0, 0};
  // The program sees the value that it has given: kMostWorkers stands for no limit.
  return {spec.start_workers, spec.min_workers,
          spec.max_workers == kMostWorkers ? 0 : spec.max_workers};
}

absl::Status CheckLimits(int min_np, int max_np) {
  RETURN_IF_ERROR(CheckNumber("min_np", min_np, 1, kMostWorkers));
  if (max_np == 0) return absl::OkStatus();
  return CheckNumber("max_np", max_np, min_np, kMostWorkers);
}

absl::StatusOr<absl::Duration> ToDuration(const char* name, double seconds) {
  // Written so that NaN, for which no comparison holds, is refused.
  if (seconds >= 0 && seconds <= kWeek) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", seconds, " seconds, and must be from 0 to ", kWeek));
}

}  // namespace hvd::rendezvous::c_api
