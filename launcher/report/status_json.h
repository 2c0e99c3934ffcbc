// The output of `horovodrun status --json`. Pure.
#ifndef LAUNCHER_REPORT_STATUS_JSON_H_
#define LAUNCHER_REPORT_STATUS_JSON_H_

#include <string>

#include "proto/rendezvous.pb.h"

namespace hvd::launcher::report {

// One JSON object on one line, without a newline. docs/operations.md documents its fields. Where
// reporting::JobJson has the same field, it has the same name. A field that has no value is null,
// and never missing.
std::string StatusJson(const pb::GetStatusResponse& status);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_STATUS_JSON_H_
