// A converter of the C API's job options: defaults, checks, and the server's own form of them.
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

// What hvd_rendezvous_job_options_init writes.
hvd_rendezvous_job_options DefaultJobOptions();

// A structure of a caller that knows the first `given.size` bytes of it; the rest is that of
// `whole`. `first_size`: that of the first version of the API.
// Errors:
//   - InvalidArgument: no version had that size; names the structure.
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

// The options with the defaults for what their caller does not know.
// Errors: those of WholeStruct.
absl::StatusOr<hvd_rendezvous_job_options> WholeJobOptions(const hvd_rendezvous_job_options& given);

// Pure.
// Errors:
//   - InvalidArgument: names the option, its value, and what would be right.
absl::StatusOr<policy::JobSpec> ToJobSpec(const hvd_rendezvous_job_options& options);

// What stands for any number of workers.
inline constexpr int kMostWorkers = 1 << 20;

// The way back, of a job's sizes.
struct Sizes {
  int np = 0;
  int min_np = 0;
  int max_np = 0;
};
Sizes ToSizes(const policy::JobSpec& spec);

// Errors:
//   - InvalidArgument: names the number that can't be right.
absl::Status CheckLimits(int min_np, int max_np);

// Errors:
//   - InvalidArgument: not from 0 to a week; names it.
absl::StatusOr<absl::Duration> ToDuration(const char* name, double seconds);

}  // namespace hvd::rendezvous::c_api

#endif  // RENDEZVOUS_C_API_JOB_OPTIONS_H_
