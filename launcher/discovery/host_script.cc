#include "launcher/discovery/host_script.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "base/os/signals.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "base/text/names.h"
#include "launcher/discovery/discovered_hosts.h"

namespace hvd::launcher::discovery {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// The limit of the script's output, far above the size of a list of hosts.
constexpr size_t kMostOutput = 4 << 20;
// The end, where programs say why they fail.
constexpr size_t kTailBytes = 300;

// The last part of the output as one line, for messages.
std::string Tail(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() > kTailBytes) text = text.substr(text.size() - kTailBytes);
  return text::OnOneLine(absl::StrReplaceAll(text, {{"\r\n", " | "}, {"\n", " | "}, {"\r", " "}}));
}

// The pause and one run of the script, on an event loop. The run is over when the
// script has exited and both streams have ended, when the time limit has passed, or when it is
// cancelled. Not thread-safe.
class Run {
  using Code = absl::StatusCode;

 public:
  Run(const HostScriptOptions& options, std::string name, EventLoop& loop)
      : options_(options), name_(std::move(name)), loop_(loop) {}
  // Also after a cancellation, or an error between the start and the watch of the process.
  ~Run() { End(); }

  // Runs the loop until the run is over or `stop` is cancelled; the result is then Cancelled.
  HostSource::Hosts Await(absl::Duration pause, const Cancellation& stop) {
    // Stays if `stop` ends the loop.
    result_ = absl::CancelledError(absl::StrCat(name_, " is not asked any more"));
    if (stop.fd() >= 0) {
      RETURN_IF_ERROR(loop_.Watch(stop.fd(), EPOLLIN, [this](uint32_t) { loop_.Stop(); }));
    }
    loop_.After(pause, [this] { Begin(); });
    loop_.Run();
    return std::move(result_);
  }

 private:
  struct Stream {
    Fd fd;
    std::string text;
    bool cut = false;  // there was more
  };

  void Begin() {
    const absl::Status started = Spawn();
    if (!started.ok()) {
      Fail(Code::kUnavailable, absl::StrCat("can't be run: ", started.message()));
    }
  }

  absl::Status Spawn() {
    ASSIGN_OR_RETURN(Pipe output, MakePipe());
    ASSIGN_OR_RETURN(Pipe error, MakePipe());
    os::SpawnOptions options;
    // A shell also runs a script that has no line "#!".
    options.file = "/bin/sh";
    // The path is passed as $0, so that the shell does not interpret special characters in it.
    options.argv = {"/bin/sh", "-c", options_.is_command ? options_.path : "\"$0\"", options_.path};
    // A scheduler's notice to all processes of the job is not for the script.
    options.ignored_signals = {os::kNoticeSignals.begin(), os::kNoticeSignals.end()};
    options.stdout_fd = output.write.get();
    options.stderr_fd = error.write.get();
    ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
    process_.emplace(std::move(process));
    RETURN_IF_ERROR(Listen(std::move(output.read), output_));
    RETURN_IF_ERROR(Listen(std::move(error.read), error_));
    RETURN_IF_ERROR(loop_.Watch(process_->pidfd(), EPOLLIN, [this](uint32_t) {
      // It stays readable, and would call again without end.
      loop_.Forget(process_->pidfd());
      exited_ = true;
      FinishWhenOver();
    }));
    loop_.After(options_.time_limit, [this] { FailLate(); });
    return absl::OkStatus();
  }

  void FailLate() {
    const std::string limit = text::DurationText(options_.time_limit);
    // A background process inherits the script's streams, so that its output never ends.
    Fail(Code::kDeadlineExceeded,
         exited_ ? absl::StrCat("has ended, but after ", limit,
                                " a process that it started still held its stdout or stderr and "
                                "was killed; redirect both for background processes")
                 : absl::StrCat("has not ended within ", limit, " and was killed"));
  }

  absl::Status Listen(Fd fd, Stream& stream) {
    stream.fd = std::move(fd);
    RETURN_IF_ERROR(SetNonBlocking(stream.fd.get()));
    return loop_.Watch(stream.fd.get(), EPOLLIN, [this, &stream](uint32_t) { Read(stream); });
  }

  void Read(Stream& stream) {
    char buffer[kReadBytes];
    const IoResult got = ReadSome(stream.fd.get(), buffer, sizeof(buffer));
    // The rest is read all the same, or the script would block on a full pipe.
    const size_t kept = std::min(got.bytes, kMostOutput - stream.text.size());
    stream.text.append(buffer, kept);
    stream.cut = stream.cut || kept < got.bytes;
    if (!got.end) return;
    Close(stream);
    FinishWhenOver();
  }

  void Close(Stream& stream) {
    if (!stream.fd.valid()) return;
    loop_.Forget(stream.fd.get());
    stream.fd.reset();
  }

  void FinishWhenOver() {
    // All three: the list may still be in the pipe when the exit is seen, and the other way round.
    if (!exited_ || output_.fd.valid() || error_.fd.valid()) return;
    // Peeked, not reaped: until End the number of the process can't be used again, so its group can
    // safely be killed.
    const std::optional<os::ExitStatus> status = process_->PeekExit();
    if (status->signal != 0) {
      return Fail(Code::kFailedPrecondition, absl::StrCat("was killed by signal ", status->signal));
    }
    if (status->exit_code != 0) {
      const std::string said = Tail(error_.text);
      return Fail(Code::kFailedPrecondition,
                  absl::StrCat("failed with exit code ", status->exit_code,
                               said.empty() ? "" : absl::StrCat(": ", said)));
    }
    // Half a list would drain the other hosts.
    if (output_.cut) {
      return Fail(Code::kInvalidArgument,
                  absl::StrCat("printed more than ", kMostOutput >> 20, " MiB"));
    }
    HostSource::Hosts hosts = ParseDiscoveredHosts(output_.text, options_.slots_per_host);
    if (!hosts.ok()) {
      return Fail(Code::kInvalidArgument,
                  absl::StrCat("printed no list of hosts: ", hosts.status().message()));
    }
    Finish(*std::move(hosts));
  }

  void Fail(Code code, const std::string& what) {
    Finish(absl::Status(code, absl::StrCat(name_, " ", what)));
  }

  void Finish(HostSource::Hosts result) {
    result_ = std::move(result);
    loop_.Stop();
  }

  // Kills what is left of the run, including background processes of the script, and reaps it.
  void End() {
    Close(output_);
    Close(error_);
    if (!process_.has_value()) return;
    loop_.Forget(process_->pidfd());
    process_->SignalGroup(SIGKILL);  // also its background processes
    process_->Wait();
  }

  const HostScriptOptions& options_;
  const std::string name_;
  EventLoop& loop_;
  HostSource::Hosts result_;
  std::optional<os::Process> process_;
  bool exited_ = false;
  Stream output_;
  Stream error_;
};

}  // namespace

HostScript::HostScript(HostScriptOptions options) : options_(std::move(options)) {}

std::string HostScript::name() const {
  return absl::StrCat("the host discovery script ", options_.path);
}

HostSource::Hosts HostScript::Next(const Cancellation& stop) {
  const absl::Duration pause =
      std::exchange(has_run_, true) ? options_.pause : absl::ZeroDuration();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) {
    // No descriptor is left for a loop. The pause is kept, so that the caller does not spin.
    pollfd wait = {stop.fd(), POLLIN, 0};
    poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(pause)));
    return absl::UnavailableError(absl::StrCat(name(), " can't be run: ", loop.status().message()));
  }
  return Run(options_, name(), **loop).Await(pause, stop);
}

}  // namespace hvd::launcher::discovery
