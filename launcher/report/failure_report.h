// The user-facing report on a failed job. Pure.
#ifndef LAUNCHER_REPORT_FAILURE_REPORT_H_
#define LAUNCHER_REPORT_FAILURE_REPORT_H_

#include <string>

#include "rendezvous/membership/events.h"

namespace hvd::launcher::report {

// Returns a block with the first rank to fail, its host, how it ended, its exception and last
// lines, and the number of workers that failed as a consequence; ends with a newline. REQUIRES:
// !verdict.success.
std::string RootCauseBlock(const rendezvous::membership::Verdict& verdict);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_FAILURE_REPORT_H_
