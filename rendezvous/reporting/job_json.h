// The state of a job as a JSON object.
#ifndef RENDEZVOUS_REPORTING_JOB_JSON_H_
#define RENDEZVOUS_REPORTING_JOB_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "rendezvous/membership/membership.h"

namespace hvd::rendezvous::reporting {

// Returns one line without a newline. Members: "job", "state" (as in GetStatus), "world", "size",
// "min_np", "max_np", "explanation", "failures", "failures_left", "commit", "checkpoint"
// (its commit's number; 0: none), "lost_steps", "lost_seconds", and "hosts": a list with "host",
// "slots", "machine", "attached", "condition", and "workers": a list with "worker", "rank" (-1:
// none), "pid", "state". Pure.
std::string JobJson(absl::string_view job_id, const membership::Membership::View& view);

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_JOB_JSON_H_
