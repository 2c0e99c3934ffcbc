// Conversion of the C API's job options: defaults, checks, and the job spec.
#ifndef RENDEZVOUS_C_API_JOB_OPTIONS_H_
#define RENDEZVOUS_C_API_JOB_OPTIONS_H_

#include <cstddef>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "horovod/rendezvous.h"
#include "rendezvous/policy/job_spec.h"

namespace hvd::rendezvous::c_api {

// The options that hvd_rendezvous_job_options_init writes.
hvd_rendezvous_job_options DefaultJobOptions();

// Completes a structure of a caller that was compiled with an older header: the first `given.size`
// bytes come from `given`, the rest from `whole`. `first_size` is the structure's size in the first
// version of the API.
// Errors:
//   - InvalidArgument: the size is not that of any version; names the structure.
template <typename Struct>
absl::StatusOr<Struct> WholeStruct(const char* name, const Struct& given, Struct whole,
                                   size_t first_size) {
  if (given.size < first_size || given.size > sizeof(Struct)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ".size is ", given.size, "; this library takes ", first_size, " to ", sizeof(Struct),
        ": initialise the structure as its comment says, with the "
        "header of this library"));
  }
  std::memcpy(&whole, &given, given.size);
  whole.size = sizeof(Struct);
  return whole;
}

// Completes the options with the defaults of the members that the caller's header lacks.
// Errors: those of WholeStruct.
absl::StatusOr<hvd_rendezvous_job_options> WholeJobOptions(const hvd_rendezvous_job_options& given);

// Converts the options to a job spec. Pure.
// Errors:
//   - InvalidArgument: names the option, its value and the allowed values.
absl::StatusOr<policy::JobSpec> ToJobSpec(const hvd_rendezvous_job_options& options);

// The value of max_workers that stands for "any number".
inline constexpr int kMostWorkers = 1 << 20;

// The sizes of a job as the C API has them, and their conversion from a spec.
struct Sizes {
  int np = 0;
  int min_np = 0;
  int max_np = 0;
};
Sizes ToSizes(const policy::JobSpec& spec);

// Errors:
//   - InvalidArgument: names the number that is out of range.
absl::Status CheckLimits(int min_np, int max_np);

// Errors:
//   - InvalidArgument: the value is not from 0 to a week; the message has `name`.
absl::StatusOr<absl::Duration> ToDuration(const char* name, double seconds);

}  // namespace hvd::rendezvous::c_api

#endif  // RENDEZVOUS_C_API_JOB_OPTIONS_H_
