#include "launcher/discovery/host_script.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "launcher/discovery/discovered_hosts.h"

namespace hvd::launcher::discovery {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// A list of hosts is never so long.
constexpr size_t kMostOutput = 4 << 20;
constexpr size_t kTailBytes = 300;

// One line of the end of what was said.
std::string Tail(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() > kTailBytes) text = text.substr(text.size() - kTailBytes);
  return absl::StrReplaceAll(text, {{"\r\n", " | "}, {"\n", " | "}, {"\r", " "}});
}

// All members but the thread belong to that thread, once it runs.
class PolledScript : public HostScript {
  using Code = absl::StatusCode;

 public:
  PolledScript(HostScriptOptions options, OnResult on_result, std::unique_ptr<EventLoop> loop)
      : options_(std::move(options)), on_result_(std::move(on_result)), loop_(std::move(loop)) {
    thread_ = std::thread([this] { RunThread(); });
  }

  ~PolledScript() override {
    loop_->Post([this] { loop_->Stop(); });
    thread_.join();
  }

 private:
  struct Stream {
    Fd fd;
    std::string text;
  };

  void RunThread() {
    // Signals are for the launcher's main thread.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    Begin();
    loop_->Run();
    if (process_.has_value()) End();
  }

  void Begin() {
    const absl::Status started = Spawn();
    if (started.ok()) return;
    End();
    Tell(Code::kUnavailable, absl::StrCat("can't be run: ", started.message()));
  }

  absl::Status Spawn() {
    ASSIGN_OR_RETURN(Pipe output, MakePipe());
    ASSIGN_OR_RETURN(Pipe error, MakePipe());
    os::SpawnOptions options;
    options.file = "/bin/sh";
    // The path as $0: nothing in it means anything to the shell.
    options.argv = {"/bin/sh", "-c", "\"$0\"", options_.path};
    options.stdout_fd = output.write.get();
    options.stderr_fd = error.write.get();
    ASSIGN_OR_RETURN(os::Process process, os::Process::Spawn(options));
    process_.emplace(std::move(process));
    exited_ = false;
    RETURN_IF_ERROR(Listen(std::move(output.read), output_));
    RETURN_IF_ERROR(Listen(std::move(error.read), error_));
    RETURN_IF_ERROR(loop_->Watch(process_->pidfd(), EPOLLIN, [this](uint32_t) {
      loop_->Forget(process_->pidfd());
      exited_ = true;
      FinishWhenOver();
    }));
    limit_ = loop_->After(options_.time_limit, [this] {
      End();
      Tell(Code::kDeadlineExceeded,
           absl::StrCat("has not ended within ", text::DurationText(options_.time_limit),
                        " and was killed"));
    });
    return absl::OkStatus();
  }

  absl::Status Listen(Fd fd, Stream& stream) {
    stream.fd = std::move(fd);
    stream.text.clear();
    RETURN_IF_ERROR(SetNonBlocking(stream.fd.get()));
    return loop_->Watch(stream.fd.get(), EPOLLIN, [this, &stream](uint32_t) { Read(stream); });
  }

  void Read(Stream& stream) {
    char buffer[kReadBytes];
    const IoResult got = ReadSome(stream.fd.get(), buffer, sizeof(buffer));
    stream.text.append(buffer, std::min(got.bytes, kMostOutput - stream.text.size()));
    if (!got.end) return;
    Close(stream);
    FinishWhenOver();
  }

  void Close(Stream& stream) {
    if (!stream.fd.valid()) return;
    loop_->Forget(stream.fd.get());
    stream.fd.reset();
  }

  void FinishWhenOver() {
    if (!exited_ || output_.fd.valid() || error_.fd.valid()) return;
    const std::optional<os::ExitStatus> status = process_->PeekExit();
    End();
    if (status->signal != 0) {
      return Tell(Code::kFailedPrecondition, absl::StrCat("was killed by signal ", status->signal));
    }
    if (status->exit_code != 0) {
      const std::string said = Tail(error_.text);
      return Tell(Code::kFailedPrecondition,
                  absl::StrCat("failed with exit code ", status->exit_code,
                               said.empty() ? "" : absl::StrCat(": ", said)));
    }
    absl::StatusOr<std::vector<rendezvous::membership::HostSlots>> hosts =
        ParseDiscoveredHosts(output_.text, options_.slots_per_host);
    if (!hosts.ok()) {
      return Tell(Code::kInvalidArgument,
                  absl::StrCat("printed no list of hosts: ", hosts.status().message()));
    }
    on_result_(*std::move(hosts));
  }

  // Of this run nothing stays; the next one is in the calendar.
  void End() {
    if (process_.has_value()) {
      loop_->Forget(process_->pidfd());
      process_->SignalGroup(SIGKILL);  // also what it left in the background
      process_->Wait();
      process_.reset();
    }
    Close(output_);
    Close(error_);
    loop_->Cancel(limit_);
    loop_->After(options_.pause, [this] { Begin(); });
  }

  void Tell(Code code, const std::string& what) {
    on_result_(
        absl::Status(code, absl::StrCat("the host discovery script ", options_.path, " ", what)));
  }

  const HostScriptOptions options_;
  const OnResult on_result_;
  const std::unique_ptr<EventLoop> loop_;
  std::optional<os::Process> process_;  // of the run under way
  bool exited_ = false;
  Stream output_;
  Stream error_;
  EventLoop::TimerId limit_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HostScript>> HostScript::Start(HostScriptOptions options,
                                                              OnResult on_result) {
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  return std::make_unique<PolledScript>(std::move(options), std::move(on_result), std::move(loop));
}

}  // namespace hvd::launcher::discovery
