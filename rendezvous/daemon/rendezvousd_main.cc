// horovod-rendezvousd: the rendezvous daemon of one job, without a launcher. See --help.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "base/failpoint/failpoint.h"
#include "base/mutex_checks.h"
#include "base/os/process_limits.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "rendezvous/daemon/chosen_store.h"
#include "rendezvous/daemon/rendezvousd.h"
#include "rendezvous/daemon/rendezvousd_options.h"
#include "rendezvous/security/protobuf_log.h"
#include "rendezvous/store/job_store.h"

namespace {

constexpr char kStandBy[] = "--standby";

absl::StatusOr<int> Run(const hvd::rendezvous::daemon::RendezvousdOptions& options) {
  hvd::os::AllowManyFiles();
  // A core file would contain the token and the private keys.
  hvd::os::ForbidCoreFiles();
  RETURN_IF_ERROR(hvd::os::CheckFiles());
  RETURN_IF_ERROR(hvd::os::CheckStack());
  RETURN_IF_ERROR(hvd::os::CheckAddressSpace());
  RETURN_IF_ERROR(hvd::os::CheckThreads());
  return hvd::rendezvous::daemon::RunRendezvousd(
      options, [&options](const hvd::rendezvous::store::StoreWait& wait) {
        return hvd::rendezvous::daemon::OpenChosenStore(options, wait);
      });
}

// Restarts this process with --standby after it has lost the job to another daemon. exec discards
// all state, which may be behind that of the new leader; pending signals stay pending.
void StandBy(const hvd::rendezvous::daemon::RendezvousdOptions& options, char** argv) {
  std::vector<char*> again(argv, argv + 1);
  std::string stand_by = kStandBy;
  if (!options.etcd.stands_by) again.push_back(stand_by.data());
  while (*++argv != nullptr) again.push_back(*argv);
  again.push_back(nullptr);
  // Not argv[0], which may be relative, or found through PATH. If this fails, the process ends with
  // an error, and its supervisor may start it again.
  execv("/proc/self/exe", again.data());
}

}  // namespace

int main(int argc, char** argv) {
  hvd::SwitchOffMutexChecks();
  hvd::rendezvous::security::SilenceProtobuf();
  const hvd::rendezvous::daemon::RendezvousdCommand command =
      hvd::rendezvous::daemon::ParseRendezvousdCommand({argv + 1, argv + argc},
                                                       hvd::ReadEnvironment());
  if (!command.options.has_value()) {
    std::fputs(command.text.c_str(), command.exit_code == 0 ? stdout : stderr);
    return command.exit_code;
  }
  hvd::failpoint::ArmByVariable("daemon");
  const absl::StatusOr<int> exit_code = Run(*command.options);
  if (exit_code.ok()) return *exit_code;
  const std::string message = hvd::text::OnOneLine(exit_code.status().message());
  const bool lost = absl::IsAborted(exit_code.status());
  std::fprintf(stderr, "horovod-rendezvousd: %s%s\n", message.c_str(), lost ? "; stands by" : "");
  if (lost) StandBy(*command.options, argv);
  switch (exit_code.status().code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnavailable:
      return 2;
    default:
      return 1;
  }
}
