// The report of a rehearsal, for people and for programs. Pure.
#ifndef REHEARSAL_REHEARSAL_REPORT_H_
#define REHEARSAL_REHEARSAL_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "rehearsal/campaign_run.h"

namespace hvd::rehearsal {

struct RehearsalReport {
  std::vector<Row> rows;
  uint64_t seed = 0;
  int job_exit_code = 0;  // of the job itself
  int exit_code = 0;      // of horovodrun
};

// A row for each fault, below a line of titles; and a line that counts them. Ends with a newline.
std::string ReportTable(const RehearsalReport& report);

// One JSON object, see docs/rehearsal.md. Ends with a newline.
std::string ReportJson(const RehearsalReport& report);

}  // namespace hvd::rehearsal

#endif  // REHEARSAL_REHEARSAL_REPORT_H_
