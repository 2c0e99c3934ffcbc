// What a running job is doing, in one line for a terminal. Pure.
#ifndef LAUNCHER_REPORT_STATUS_LINE_H_
#define LAUNCHER_REPORT_STATUS_LINE_H_

#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"

namespace hvd::launcher::report {

struct StatusLine {
  std::string text;  // without a newline; the most important comes first, in case it gets cut
  // Nothing of it can change unless the job tells of it by a notice.
  bool settled = false;
};

// REQUIRES: it is an elastic job.
StatusLine MakeStatusLine(const rendezvous::membership::Membership::View& view, absl::Time now);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_STATUS_LINE_H_
