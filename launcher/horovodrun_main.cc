// horovodrun: runs a command on several hosts as the workers of one Horovod job.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/console/terminal_line.h"
#include "base/env.h"
#include "base/failpoint/failpoint.h"
#include "base/fd.h"
#include "base/mutex_checks.h"
#include "base/os/process_limits.h"
#include "base/os/protected_open.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/version.h"
#include "launcher/check_build.h"
#include "launcher/cli/control_options.h"
#include "launcher/cli/options.h"
#include "launcher/control.h"
#include "launcher/dry_run.h"
#include "launcher/job/handover.h"
#include "launcher/job/host_search.h"
#include "launcher/job/job.h"
#include "launcher/job/job_file.h"
#include "launcher/job/stop_signals.h"
#include "launcher/plan/plan.h"
#include "launcher/plan/runtime_files.h"
#include "launcher/report/screen.h"
#include "launcher/watch.h"
#include "rendezvous/reporting/event_log.h"
#include "rendezvous/security/protobuf_log.h"

namespace hvd::launcher {
namespace {

int Refuse(const absl::Status& status) {
  // The message may quote an argument, with line ends or escape sequences in it.
  std::fprintf(stderr, "horovodrun: error: %s\n", hvd::text::OnOneLine(status.message()).c_str());
  return 2;
}

int Print(const std::string& text) {
  // A full disk or a closed pipe shows when the buffer is written.
  std::fputs(text.c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int RunWatch(const cli::ControlOptions& options, const std::string& job_realm,
             const Environment& environment) {
  const bool redraws = !options.json && console::CanHaveTerminalLine(STDOUT_FILENO, environment);
  int exit_code = 0;
  bool is_first = true;
  const absl::Status status =
      Watch(options, job_realm, Clock::Real(), [&](const std::string& text) {
        const bool separates = !std::exchange(is_first, false) && !redraws && !options.json;
        exit_code = Print(redraws ? report::Redraw(text, report::SizeOfScreen(STDOUT_FILENO))
                                  : absl::StrCat(separates ? "\n" : "", text));
        return exit_code == 0;
      });
  return status.ok() ? exit_code : Refuse(status);
}

int RunControl(const std::vector<std::string>& args, const std::string& job_realm,
               const Environment& environment) {
  const absl::StatusOr<cli::ControlOptions> options = cli::ParseControlOptions(args);
  if (!options.ok()) return Refuse(options.status());
  if (options->action == cli::ControlOptions::Action::kShowHelp)
    return Print(cli::ControlHelpText(args[0]));
  if (options->watch.has_value()) return RunWatch(*options, job_realm, environment);
  const absl::StatusOr<ControlAnswer> answer = Control(*options, job_realm);
  return answer.ok() ? Print(answer->text) : Refuse(answer.status());
}

absl::StatusOr<console::OutputSinkOptions> MakeSinkOptions(const cli::Options& options,
                                                           const plan::JobPlan& plan,
                                                           const Environment& environment) {
  const cli::OutputOptions& output = options.output;
  console::OutputSinkOptions sink;
  ASSIGN_OR_RETURN(sink.files, console::RankFiles::Create(
                                   output.directory, plan.num_proc,
                                   plan.elastic.has_value() ? console::RankFiles::Ranks::kMayGrow
                                                            : console::RankFiles::Ranks::kFixed,
                                   {output.rotate_bytes, output.rotated_files}));
  sink.timestamps = output.timestamps;
  sink.json = output.json;
  sink.wall_now = WallNow;
  sink.has_status_line = plan.elastic.has_value() && !output.json &&
                         console::CanHaveTerminalLine(STDERR_FILENO, environment);
  return sink;
}

// Null: the options name no file.
absl::StatusOr<std::unique_ptr<rendezvous::reporting::EventLog>> OpenEventLog(
    const cli::Options& options) {
  if (options.event_log.empty()) return nullptr;
  return rendezvous::reporting::EventLog::Open(options.event_log);
}

// Invalid: the options name no file.
absl::StatusOr<Fd> OpenInjectReport(const plan::JobPlan& plan) {
  if (!plan.rehearsal.has_value() || plan.rehearsal->report.empty()) return Fd();
  const std::string& path = plan.rehearsal->report;
  absl::StatusOr<Fd> file = os::OpenOutputFile(path, os::OldContent::kDropped, 0644);
  if (file.ok()) return file;
  return absl::InvalidArgumentError(
      absl::StrCat("--inject-report: can't write ", path, ": ", file.status().message()));
}

job::JobDependencies DependenciesOf(const plan::JobPlan& plan,
                                    rendezvous::reporting::EventLog* event_log,
                                    const Fd& inject_report) {
  job::JobDependencies dependencies;
  dependencies.start_server = [](rendezvous::server::ServerOptions o) {
    return rendezvous::server::Server::Start(std::move(o));
  };
  dependencies.start_agent = spawn::AgentProcess::Start;
  dependencies.search_hosts = [&plan](job::OnHostsFound found) {
    return job::SearchHosts(plan, found);
  };
  dependencies.event_log = event_log;
  if (inject_report.valid()) {
    dependencies.write_report = [fd = inject_report.get()](const std::string& json) {
      return WriteAll(fd, json);
    };
  }
  return dependencies;
}

// What must be so before any thread starts, since threads inherit the signal mask. CheckThreads
// comes before gRPC is used, which hangs if it gets no threads.
absl::Status PrepareToRun() {
  job::PrepareProcess();
  os::AllowManyFiles();
  os::ForbidCoreFiles();
  RETURN_IF_ERROR(os::CheckFiles());
  return os::CheckThreads();
}

// All that may refuse a job comes before it starts, so that bad input ends the command with 2.
absl::StatusOr<int> Run(const cli::Options& options, const Environment& environment) {
  RETURN_IF_ERROR(PrepareToRun());
  failpoint::ArmByVariable("daemon");
  ASSIGN_OR_RETURN(plan::JobPlan plan, plan::MakePlanHere(options, environment));
  // Before the first effect: HandOver sends keys, and the sink empties the files of the output.
  if (options.dry_run) return Print(DryRunText(plan, options));
  plan.job_realm = job::kJobRealm;
  if (options.handover_fd >= 0) {
    ASSIGN_OR_RETURN(plan.worker_input, job::HandOver(Fd(options.handover_fd), plan.listen));
  }
  ASSIGN_OR_RETURN(console::OutputSinkOptions sink, MakeSinkOptions(options, plan, environment));
  ASSIGN_OR_RETURN(const std::vector<Fd> runtime_files, plan::OpenRuntimeFiles(plan));
  ASSIGN_OR_RETURN(const std::unique_ptr<rendezvous::reporting::EventLog> event_log,
                   OpenEventLog(options));
  ASSIGN_OR_RETURN(const Fd inject_report, OpenInjectReport(plan));
  // Declared before the watcher and the sink, whose callbacks post to it.
  job::JobEventQueue events;
  ASSIGN_OR_RETURN(
      const auto watcher,
      job::StopSignalWatcher::Start([&events](int signal) { events.Post(job::EventOf(signal)); },
                                    options.end_with_stdin ? STDIN_FILENO : -1));
  console::OutputSink output(std::move(sink));
  output.OnBroken([&events](bool is_stderr, int error) {
    events.Post(job::OutputIsBroken{is_stderr, error});
  });
  return job::RunJob(plan, DependenciesOf(plan, event_log.get(), inject_report), events, output);
}

int Main(const std::vector<std::string>& args) {
  const absl::Status stack = os::CheckStack();
  if (!stack.ok()) return Refuse(stack);
  if (absl::Status space = os::CheckAddressSpace(); !space.ok()) return Refuse(space);
  const Environment environment = ReadEnvironment();
  // First: for ParseOptions the word "status" is a command to run.
  if (cli::IsControlCommand(args)) return RunControl(args, job::kJobRealm, environment);
  const absl::StatusOr<cli::Options> options = cli::ParseOptions(args, environment);
  if (!options.ok()) return Refuse(options.status());
  if (options->action == cli::Options::Action::kShowHelp) return Print(cli::HelpText());
  if (options->action == cli::Options::Action::kShowVersion)
    return Print(std::string(kVersion) + "\n");
  if (options->action == cli::Options::Action::kCheckBuild)
    return Print(CheckBuildTable(AskPython()));
  const absl::StatusOr<int> exit_code = Run(*options, environment);
  return exit_code.ok() ? *exit_code : Refuse(exit_code.status());
}

}  // namespace
}  // namespace hvd::launcher

int main(int argc, char** argv) {
  hvd::SwitchOffMutexChecks();
  hvd::rendezvous::security::SilenceProtobuf();
  return hvd::launcher::Main(std::vector<std::string>(argv + 1, argv + argc));
}
