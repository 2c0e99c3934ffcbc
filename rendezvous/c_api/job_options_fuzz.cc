// Fuzz target: the options of a job from a scheduler.
#include <cstring>

#include "rendezvous/c_api/job_options.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::c_api {
namespace {

void Check(absl::string_view bytes) {
  hvd_rendezvous_job_options given = DefaultJobOptions();
  std::memcpy(&given, bytes.data(), std::min(bytes.size(), sizeof(given)));
  given.id = nullptr;  // as it may not point anywhere
  const auto options = WholeJobOptions(given);
  if (!options.ok()) return RequireOneLine(options.status());
  Require(options->size == sizeof(given), "the rest has its defaults");
  const auto spec = ToJobSpec(*options);
  if (!spec.ok()) return RequireOneLine(spec.status());
  Require(spec->min_workers >= 1 && spec->min_workers <= spec->max_workers, "a job has a size");
  Require(spec->start_timeout >= absl::ZeroDuration() && spec->start_timeout <= absl::Hours(24 * 7),
          "a time is from 0 to a week");
  ToSizes(*spec);
}

}  // namespace
}  // namespace hvd::rendezvous::c_api

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::rendezvous::c_api::Check(hvd::AsText(data, size));
  return 0;
}
