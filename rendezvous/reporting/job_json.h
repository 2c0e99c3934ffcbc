// The state of a job as a JSON object.
#ifndef RENDEZVOUS_REPORTING_JOB_JSON_H_
#define RENDEZVOUS_REPORTING_JOB_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "rendezvous/membership/membership.h"

namespace hvd::rendezvous::reporting {

// Returns one line without a newline, whose members are documented at hvd_rendezvous_describe.
// Those of `horovodrun status --json` have the same names and meanings. Pure.
std::string JobJson(absl::string_view job_id, const membership::Membership::View& view);

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_JOB_JSON_H_
