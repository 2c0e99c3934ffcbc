// horovod-rendezvousd: the rendezvous daemon of one job, without a launcher. See --help.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/env.h"
#include "base/mutex_checks.h"
#include "base/os/process_limits.h"
#include "base/status_macros.h"
#include "rendezvous/daemon/rendezvousd.h"
#include "rendezvous/daemon/rendezvousd_options.h"
#include "rendezvous/store/file_job_store.h"
#include "rendezvous/store/job_store.h"

namespace {

// Null: no option asks for one.
absl::StatusOr<std::unique_ptr<hvd::rendezvous::store::JobStore>> OpenStore(
    const hvd::rendezvous::daemon::RendezvousdOptions& options) {
  if (options.state_dir.empty()) return nullptr;
  auto store = hvd::rendezvous::store::FileJobStore::Open(options.state_dir);
  if (store.ok()) return *std::move(store);
  return absl::Status(store.status().code(),
                      absl::StrCat("--state-dir: ", store.status().message()));
}

absl::StatusOr<int> Run(const hvd::rendezvous::daemon::RendezvousdOptions& options) {
  hvd::os::AllowManyFiles();
  hvd::os::ForbidCoreFiles();
  RETURN_IF_ERROR(hvd::os::CheckThreads());
  return hvd::rendezvous::daemon::RunRendezvousd(options,
                                                 [&options] { return OpenStore(options); });
}

}  // namespace

int main(int argc, char** argv) {
  hvd::SwitchOffMutexChecks();
  const hvd::rendezvous::daemon::RendezvousdCommand command =
      hvd::rendezvous::daemon::ParseRendezvousdCommand({argv + 1, argv + argc},
                                                       hvd::ReadEnvironment());
  if (!command.options.has_value()) {
    std::fputs(command.text.c_str(), command.exit_code == 0 ? stdout : stderr);
    return command.exit_code;
  }
  const absl::StatusOr<int> exit_code = Run(*command.options);
  if (exit_code.ok()) return *exit_code;
  const std::string message(exit_code.status().message());
  std::fprintf(stderr, "horovod-rendezvousd: %s\n", message.c_str());
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
