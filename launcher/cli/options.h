// The parsed command line of horovodrun: Horovod's own flags (see --help) and its file of settings.
// Flags for features that this version does not have are recognised and refused, never ignored.
#ifndef LAUNCHER_CLI_OPTIONS_H_
#define LAUNCHER_CLI_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "launcher/allocation/allocation.h"
#include "launcher/cli/environment.h"
#include "launcher/cli/output_flags.h"
#include "options/elastic_options.h"

namespace hvd::launcher::cli {

struct Options {
  enum class Action { kRunJob, kShowHelp, kShowVersion, kCheckBuild };
  Action action = Action::kRunJob;

  int num_proc = 0;                                  // 0: see auto_num_proc
  bool auto_num_proc = false;                        // the plan finds the number
  std::string hosts;                                 // as given to -H; empty: not given
  std::string hostfile;                              // empty: not given
  std::string launcher;                              // as given; empty: chosen by ChooseLauncher
  std::optional<allocation::Allocation> allocation;  // set if its hosts are to be used
  int ssh_port = 0;                                  // 0: ssh's own choice
  std::string ssh_identity_file;
  absl::Duration start_timeout = absl::Seconds(30);
  std::vector<std::string> networks;  // interface names and CIDRs

  std::optional<options::ElasticOptions> elastic;  // empty: a static job

  bool restarts = false;  // the command, in each world

  std::string config_file;  // empty: none
  std::string event_log;    // a file; empty: none
  std::string metrics;      // an address to serve them at; empty: none
  OutputOptions output;
  std::string inject;         // the file of a campaign of faults; empty: no rehearsal
  std::string inject_report;  // a file; empty: none
  bool verbose = false;
  bool dry_run = false;         // only print what would be done
  bool end_with_stdin = false;  // the job is stopped at the end of stdin
  int handover_fd = -1;         // see launcher/job/handover.h; -1: none

  std::vector<Assignment> tunables;  // from flags for runtime variables
  std::vector<Assignment> exports;   // from -x
  std::vector<std::string> command;
};

// `args` without the program's name. Reads the file of --config-file, whose settings apply where
// the flags do not set another value.
// Errors: one line that says which flag, or which line of the file, is wrong and what would be
// right.
//   - InvalidArgument: a wrong flag or setting.
//   - NotFound: a file can't be read.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& args,
                                     const Environment& environment);

std::string HelpText();

}  // namespace hvd::launcher::cli

#endif  // LAUNCHER_CLI_OPTIONS_H_
