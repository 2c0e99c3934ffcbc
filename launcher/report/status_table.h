// The output of `horovodrun status`. Pure.
#ifndef LAUNCHER_REPORT_STATUS_TABLE_H_
#define LAUNCHER_REPORT_STATUS_TABLE_H_

#include <string>

#include "proto/rendezvous.pb.h"

namespace hvd::launcher::report {

// The job's state, a table of hosts and workers, and recent events; ends with a newline.
std::string StatusTable(const pb::GetStatusResponse& status);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_STATUS_TABLE_H_
