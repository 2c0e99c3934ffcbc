// horovodrun: runs a command on several hosts as the workers of one Horovod job.
#include <cstdio>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/version.h"
#include "launcher/check_build.h"
#include "launcher/job.h"
#include "launcher/options.h"
#include "launcher/plan.h"
#include "launcher/stop_signals.h"

namespace hvd {
namespace {

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "horovodrun: error: %s\n", std::string(status.message()).c_str());
  return 2;
}

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int Main(const std::vector<std::string>& args) {
  const Environment environment = ReadEnvironment();
  const absl::StatusOr<Options> options = ParseOptions(args, environment);
  if (!options.ok()) return Refuse(options.status());
  if (options->action == Options::Action::kShowHelp) return Print(HelpText());
  if (options->action == Options::Action::kShowVersion) return Print(std::string(kVersion) + "\n");
  if (options->action == Options::Action::kCheckBuild) return Print(CheckBuildTable(AskPython()));
  PrepareProcess();
  const absl::StatusOr<JobPlan> plan = MakePlanHere(*options, environment);
  if (!plan.ok()) return Refuse(plan.status());
  auto files = RankFiles::Create(options->output_directory, plan->num_proc);
  if (!files.ok()) return Refuse(files.status());
  OutputSinkOptions sink;
  sink.files = *std::move(files);
  sink.timestamps = options->prefix_timestamp;
  sink.wall_now = WallNow;
  JobEventQueue events;
  const auto watcher =
      StopSignalWatcher::Start([&events](int signal) { events.Post(StopSignal{signal}); });
  if (!watcher.ok()) return Refuse(watcher.status());
  OutputSink output(std::move(sink));
  output.OnBroken([&events] { events.Post(OutputIsBroken{}); });
  JobDependencies dependencies;
  dependencies.start_server = [](ServerOptions o) { return Server::Start(std::move(o)); };
  dependencies.start_agent = AgentProcess::Start;
  return RunJob(*plan, dependencies, events, output);
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  return hvd::Main(std::vector<std::string>(argv + 1, argv + argc));
}
