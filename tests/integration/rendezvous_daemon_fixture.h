// A test fixture that runs horovod-rendezvousd as a process.
#ifndef TESTS_INTEGRATION_RENDEZVOUS_DAEMON_FIXTURE_H_
#define TESTS_INTEGRATION_RENDEZVOUS_DAEMON_FIXTURE_H_

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/os/process.h"
#include "base/version.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "rendezvous/client/agent_link.h"

namespace hvd {

// A running daemon and its output.
class Daemon {
 public:
  // `before`: shell commands that run first, in the process that becomes the daemon.
  explicit Daemon(std::vector<std::string> arguments, const std::string& before = "") {
    Pipe out = *MakePipe();
    Pipe err = *MakePipe();
    os::SpawnOptions options;
    options.file = "rendezvous/daemon/horovod-rendezvousd";
    options.argv = std::move(arguments);
    options.argv.insert(options.argv.begin(), "horovod-rendezvousd");
    if (!before.empty()) {
      const std::string command = absl::StrCat(before, "; exec \"$0\" \"$@\"");
      options.argv[0] = options.file;
      options.argv.insert(options.argv.begin(), {"sh", "-c", command});
      options.file = "sh";
    }
    options.stdout_fd = out.write.get();
    options.stderr_fd = err.write.get();
    process_ = std::make_unique<os::Process>(*os::Process::Spawn(options));
    out_ = std::move(out.read);
    err_ = std::move(err.read);
  }

  // The next line of stdout, or stderr.
  std::string Line() { return LineOf(out_); }
  std::string ErrorLine() { return LineOf(err_); }

  std::string Errors() { return ReadAll(err_); }
  // The number of its open files.
  int Files() const {
    int count = 0;
    const std::string folder = absl::StrCat("/proc/", process_->pid(), "/fd");
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      (void)entry;
      ++count;
    }
    return count;
  }
  void Signal(int signal) { process_->Signal(signal); }
  os::ExitStatus Wait() { return process_->Wait(); }

  static std::string ReadAll(const Fd& fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(fd.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  static std::string LineOf(const Fd& fd) {
    std::string line;
    char c = 0;
    while (read(fd.get(), &c, 1) == 1 && c != '\n') line.push_back(c);
    return line;
  }

  std::unique_ptr<os::Process> process_;
  Fd out_;
  Fd err_;
};

class RendezvousDaemonTest : public testing::Test {
 protected:
  ~RendezvousDaemonTest() override {
    unlink(file_.c_str());
    for (const char* name : {"/job.pb", "/journal", "/lock"}) unlink((dir_ + name).c_str());
    rmdir(dir_.c_str());
  }

  std::vector<std::string> WithStateDir() const {
    std::vector<std::string> arguments = Arguments();
    arguments.insert(arguments.end(), {"--state-dir", dir_});
    return arguments;
  }

  static pb::AgentHello Hello(const std::vector<uint64_t>& known_workers = {}) {
    pb::AgentHello hello;
    hello.set_version(kVersion);
    hello.set_host("a");
    hello.set_slots(1);
    hello.set_incarnation(1);
    for (const uint64_t worker : known_workers) hello.add_known_workers(worker);
    return hello;
  }

  std::vector<std::string> Arguments(const std::string& listen = "127.0.0.1:0") const {
    return {"--listen", listen, "--np", "1", "--hosts", "a:1", "--token-file", file_};
  }

  rendezvous::security::PeerCredentials Credentials() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    pb::Credentials message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text.str(), &message));
    return {message.token(), message.ca_certificate(), message.certificate(),
            message.private_key()};
  }

  bool FileExists() const { return access(file_.c_str(), F_OK) == 0; }

  // Expects an exit with code 2 and one line that contains `expected`.
  static void ExpectRefusal(Daemon daemon, const std::string& expected) {
    const std::string errors = daemon.Errors();
    EXPECT_EQ(daemon.Wait().exit_code, 2);
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_TRUE(absl::StrContains(errors, expected)) << errors;
  }

  const std::string dir_ = testing::TempDir() + "/rendezvousd_dir_" + std::to_string(getpid());
  const std::string file_ = testing::TempDir() + "/rendezvousd_" + std::to_string(getpid());
};

}  // namespace hvd

#endif  // TESTS_INTEGRATION_RENDEZVOUS_DAEMON_FIXTURE_H_
