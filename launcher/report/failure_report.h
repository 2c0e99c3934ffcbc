// The report on a failed job, for the user. Pure.
#ifndef LAUNCHER_REPORT_FAILURE_REPORT_H_
#define LAUNCHER_REPORT_FAILURE_REPORT_H_

#include <string>

#include "rendezvous/membership/events.h"

namespace hvd::launcher::report {

// A block that names the first rank to fail, its host, how it ended, its exception and last lines,
// and how many others followed; ends with a newline. REQUIRES: !verdict.success.
std::string RootCauseBlock(const rendezvous::membership::Verdict& verdict);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_FAILURE_REPORT_H_
