// Fuzz target: what a launcher tells an agent to start.
#include "agent/launch_plan.h"
#include "base/version.h"
#include "tests/support/fuzzing.h"

namespace hvd::agent {
namespace {

void Check(absl::string_view launcher, absl::string_view daemon) {
  pb::AgentBootstrap bootstrap;
  pb::StartWorker start;
  if (!bootstrap.ParseFromArray(launcher.data(), static_cast<int>(launcher.size()))) return;
  if (!start.ParseFromArray(daemon.data(), static_cast<int>(daemon.size()))) return;
  bootstrap.set_version(kVersion);
  const auto plan = MakeLaunchPlan(bootstrap);
  if (!plan.ok()) return Require(!plan.status().message().empty(), "an error");
  Require(!plan->argv.empty() && plan->file[0] == '/', "there is a command");
  WorkerPlace place;
  place.daemon_address = "127.0.0.1:4000";
  const auto variables = WorkerEnvironment(*plan, start, place);
  Require(AsEntries(variables).size() == variables.size(), "each variable is an entry");
}

}  // namespace
}  // namespace hvd::agent

// The bootstrap after its length, and the order to start a worker.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::InputParts parts(data, size);
  const absl::string_view launcher = parts.Text();
  hvd::agent::Check(launcher, parts.Rest());
  return 0;
}
