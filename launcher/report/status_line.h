// The one-line summary of a running job's state, for a terminal. Pure.
#ifndef LAUNCHER_REPORT_STATUS_LINE_H_
#define LAUNCHER_REPORT_STATUS_LINE_H_

#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"

namespace hvd::launcher::report {

struct StatusLine {
  // Without a newline. The most important part comes first, since a terminal may cut off the rest.
  std::string text;
  // Whether the text can change only together with a notice from the job.
  bool settled = false;
};

// REQUIRES: `view` is of an elastic job.
StatusLine MakeStatusLine(const rendezvous::membership::Membership::View& view, absl::Time now);

}  // namespace hvd::launcher::report

#endif  // LAUNCHER_REPORT_STATUS_LINE_H_
