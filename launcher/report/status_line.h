// The state of a running job, in one line for a terminal. Pure.
#ifndef LAUNCHER_REPORT_STATUS_LINE_H_
#define LAUNCHER_REPORT_STATUS_LINE_H_

#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"

namespace hvd::launcher::report {

struct StatusLine {
  std::string text;  // without a newline; the most important comes first, in case it gets cut
  // Nothing in it can change without a notice from the job.
  bool settled = false;
};

// REQUIRES: `view` is of an elastic job.
StatusLine MakeStatusLine(const rendezvous::membership::Membership::View& view, absl::Time now);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_STATUS_LINE_H_
