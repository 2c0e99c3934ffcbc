// What the user reads when a job has failed. Pure.
#ifndef LAUNCHER_REPORT_FAILURE_REPORT_H_
#define LAUNCHER_REPORT_FAILURE_REPORT_H_

#include <string>

#include "rendezvous/membership/events.h"

namespace hvd::launcher::report {

// One block that names the first rank to fail, its host, how it ended, its exception and last
// lines, and how many others followed; ends with a newline. REQUIRES: !verdict.success.
std::string RootCauseBlock(const rendezvous::membership::Verdict& verdict);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_FAILURE_REPORT_H_
