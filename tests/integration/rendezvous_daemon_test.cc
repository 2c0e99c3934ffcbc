// horovod-rendezvousd as a process: its output, its file, its exit codes.
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/version.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "rendezvous/client/agent_link.h"
#include "rendezvous/client/grpc_rendezvous_client.h"

namespace hvd {
namespace {

// A running daemon and what it says.
class Daemon {
 public:
  // With this limit of open files, if it is not 0.
  explicit Daemon(std::vector<std::string> arguments, int files = 0) {
    Pipe out = *MakePipe();
    Pipe err = *MakePipe();
    SpawnOptions options;
    options.file = "rendezvous/horovod-rendezvousd";
    options.argv = std::move(arguments);
    options.argv.insert(options.argv.begin(), "horovod-rendezvousd");
    if (files > 0) {
      const std::string command = absl::StrCat("ulimit -n ", files, "; exec \"$0\" \"$@\"");
      options.argv[0] = options.file;
      options.argv.insert(options.argv.begin(), {"sh", "-c", command});
      options.file = "sh";
    }
    options.stdout_fd = out.write.get();
    options.stderr_fd = err.write.get();
    process_ = std::make_unique<Process>(*Process::Spawn(options));
    out_ = std::move(out.read);
    err_ = std::move(err.read);
  }

  // The next line of stdout, or stderr.
  std::string Line() { return LineOf(out_); }
  std::string ErrorLine() { return LineOf(err_); }

  std::string Errors() { return ReadAll(err_); }
  // How many files it has open.
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
  ExitStatus Wait() { return process_->Wait(); }

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

  std::unique_ptr<Process> process_;
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

  PeerCredentials Credentials() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    pb::Credentials message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text.str(), &message));
    return {message.token(), message.ca_certificate(), message.certificate(),
            message.private_key()};
  }

  bool FileExists() const { return access(file_.c_str(), F_OK) == 0; }

  // Ends with code 2 and one line that contains `expected`.
  static void ExpectRefusal(Daemon daemon, const std::string& expected) {
    const std::string errors = daemon.Errors();
    EXPECT_EQ(daemon.Wait().exit_code, 2);
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_TRUE(absl::StrContains(errors, expected)) << errors;
  }

  const std::string dir_ = testing::TempDir() + "/rendezvousd_dir_" + std::to_string(getpid());
  const std::string file_ = testing::TempDir() + "/rendezvousd_" + std::to_string(getpid());
};

TEST_F(RendezvousDaemonTest, ServesWhoeverHasItsFile_UntilSigterm) {
  Daemon daemon(Arguments());
  const std::string address = daemon.Line();
  const auto status =
      NewGrpcRendezvousClient(address, Credentials())->GetStatus(absl::InfiniteDuration());
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), "forming");
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait().exit_code, 143);
  EXPECT_TRUE(absl::StrContains(daemon.Errors(), "SIGTERM"));
  EXPECT_FALSE(FileExists());
}

TEST_F(RendezvousDaemonTest, SigintEndsItWith130) {
  Daemon daemon(Arguments());
  daemon.Line();
  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.Wait().exit_code, 130);
}

TEST_F(RendezvousDaemonTest, EndsWithTheJobsVerdict) {
  for (const int code : {0, 7}) {
    Daemon daemon(Arguments());
    const std::string address = daemon.Line();
    absl::Notification opened;
    absl::Notification closed;
    std::unique_ptr<AgentLink> link;
    link = AgentLink::Open(address, Credentials(), Hello(),
                           {[&](const pb::AgentCommand& command) {
                              if (!command.has_start()) return;
                              opened.WaitForNotification();
                              pb::AgentMessage message;
                              message.mutable_exited()->set_worker_id(command.start().worker_id());
                              message.mutable_exited()->set_exit_code(code);
                              link->Send(message);
                            },
                            [&](absl::Status) { closed.Notify(); }});
    opened.Notify();
    EXPECT_EQ(daemon.Wait().exit_code, code) << daemon.Errors();
    closed.WaitForNotification();
  }
}

TEST_F(RendezvousDaemonTest, BadInput_OneLineAndCode2_NothingIsLeft) {
  ExpectRefusal(Daemon({"--np", "1"}), "--listen");
  ExpectRefusal(Daemon(Arguments("localhost:0")), "localhost:0");
  ExpectRefusal(Daemon(Arguments("192.0.2.1:0")), "192.0.2.1:0");
  EXPECT_FALSE(FileExists());
}

TEST_F(RendezvousDaemonTest, ExistingFile_IsRefusedAndKept) {
  std::ofstream(file_) << "mine";
  ExpectRefusal(Daemon(Arguments()), file_);
  EXPECT_TRUE(FileExists());
}

TEST_F(RendezvousDaemonTest, TwoAddresses_AreBothServed) {
  std::vector<std::string> arguments = Arguments();
  arguments.insert(arguments.end(), {"--listen", "127.0.0.2:0"});
  Daemon daemon(arguments);
  for (const std::string& address : {daemon.Line(), daemon.Line()}) {
    EXPECT_TRUE(
        NewGrpcRendezvousClient(address, Credentials())->GetStatus(absl::InfiniteDuration()).ok())
        << address;
  }
  daemon.Signal(SIGTERM);
  daemon.Wait();
}

TEST_F(RendezvousDaemonTest, ListedTwice_OneLine) {
  Daemon first(Arguments());
  const std::string address = first.Line();
  first.Signal(SIGTERM);
  first.Wait();
  std::vector<std::string> arguments = Arguments(address);
  arguments.insert(arguments.end(), {"--listen", address});
  ExpectRefusal(Daemon(arguments), "can't listen on " + address + ": Address already in use");
}

TEST_F(RendezvousDaemonTest, StrangersTakeAllItsFiles_LaterItServesAgain) {
  constexpr int kLimit = 64;
  Daemon daemon(Arguments(), kLimit);
  const std::string address = daemon.Line();
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::vector<Fd> strangers;
  for (int i = 0; i < 2 * kLimit; ++i) {
    strangers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(strangers.back().get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (daemon.Files() < kLimit && absl::Now() < deadline) sched_yield();
  ASSERT_EQ(daemon.Files(), kLimit);
  strangers.clear();
  const auto status = NewGrpcRendezvousClient(address, Credentials())->GetStatus(absl::Seconds(30));
  EXPECT_TRUE(status.ok()) << status.status();
  daemon.Signal(SIGTERM);
  daemon.Wait();
}

TEST_F(RendezvousDaemonTest, KilledAndStartedAgain_SameJobSameAddressSameCredentials) {
  uint64_t worker = 0;
  std::string address;
  PeerCredentials credentials;
  {
    Daemon daemon(WithStateDir());
    address = daemon.Line();
    credentials = Credentials();
    absl::Notification started;
    absl::Notification closed;
    const auto link = AgentLink::Open(address, credentials, Hello(),
                                      {[&](const pb::AgentCommand& command) {
                                         if (command.has_welcome()) {
                                           EXPECT_EQ(command.welcome().reattach_ms(), 30000u);
                                         }
                                         if (!command.has_start()) return;
                                         worker = command.start().worker_id();
                                         started.Notify();
                                       },
                                       [&](absl::Status) { closed.Notify(); }});
    started.WaitForNotification();
    daemon.Signal(SIGKILL);
    daemon.Wait();
    closed.WaitForNotification();
  }
  EXPECT_TRUE(FileExists());
  {
    Daemon daemon(WithStateDir());
    EXPECT_EQ(daemon.Line(), address);
    EXPECT_EQ(Credentials().token, credentials.token);
    EXPECT_EQ(Credentials().private_key, credentials.private_key);
    const auto status =
        NewGrpcRendezvousClient(address, credentials)->GetStatus(absl::InfiniteDuration());
    ASSERT_TRUE(status.ok()) << status.status();
    ASSERT_EQ(status->hosts_size(), 1);
    ASSERT_EQ(status->hosts(0).workers_size(), 1);
    EXPECT_EQ(status->hosts(0).workers(0).worker_id(), worker);
    absl::Notification opened;
    absl::Notification closed;
    std::unique_ptr<AgentLink> link;
    link = AgentLink::Open(address, credentials, Hello({worker}),
                           {[&](const pb::AgentCommand& command) {
                              EXPECT_FALSE(command.has_start()) << "it is running";
                              if (!command.has_welcome()) return;
                              opened.WaitForNotification();
                              pb::AgentMessage message;
                              message.mutable_exited()->set_worker_id(worker);
                              message.mutable_exited()->set_exit_code(7);
                              link->Send(message);
                            },
                            [&](absl::Status) { closed.Notify(); }});
    opened.Notify();
    EXPECT_EQ(daemon.Wait().exit_code, 7) << daemon.Errors();
    closed.WaitForNotification();
    EXPECT_FALSE(FileExists());
  }
  Daemon late(WithStateDir());
  EXPECT_EQ(late.Wait().exit_code, 7);
  EXPECT_TRUE(absl::StrContains(late.Errors(), "has ended"));
}

TEST_F(RendezvousDaemonTest, Sigterm_WithStateDir_LeavesTheJobToTheNextDaemon) {
  std::string address;
  {
    Daemon daemon(WithStateDir());
    address = daemon.Line();
    absl::Notification started;
    absl::Notification closed;
    absl::Status why;
    const auto link = AgentLink::Open(address, Credentials(), Hello(),
                                      {[&](const pb::AgentCommand& command) {
                                         if (command.has_start()) started.Notify();
                                         EXPECT_FALSE(command.has_end());
                                       },
                                       [&](absl::Status status) {
                                         why = status;
                                         closed.Notify();
                                       }});
    started.WaitForNotification();
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait().exit_code, 143);
    EXPECT_TRUE(absl::StrContains(daemon.Errors(), "SIGTERM: leaves the job as it is"));
    closed.WaitForNotification();
    EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
  }
  EXPECT_TRUE(FileExists());
  Daemon next(WithStateDir());
  EXPECT_EQ(next.Line(), address);
  const auto status =
      NewGrpcRendezvousClient(address, Credentials())->GetStatus(absl::InfiniteDuration());
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->hosts(0).workers_size(), 1);
  next.Signal(SIGINT);
  next.Signal(SIGINT);
  EXPECT_EQ(next.Wait().exit_code, 130);
  EXPECT_FALSE(FileExists());
}

TEST_F(RendezvousDaemonTest, TellsWhatItWaitsFor) {
  Daemon daemon({"--listen", "127.0.0.1:0", "-np", "2", "--min-np", "1", "--token-file", file_});
  const std::string address = daemon.Line();
  absl::Notification opened;
  const auto link = AgentLink::Open(address, Credentials(), Hello(),
                                    {[&](const pb::AgentCommand&) {}, [](absl::Status) {}});
  EXPECT_EQ(daemon.ErrorLine(), "horovod-rendezvousd: host a joined with 1 slot");
  const std::string line = daemon.ErrorLine();
  EXPECT_TRUE(absl::StrContains(
      line, "waiting for more hosts to attach (1 of 2 slots, on host a); for up to 9m"))
      << line;
  daemon.Signal(SIGINT);
  EXPECT_EQ(daemon.Wait().exit_code, 130);
}

TEST_F(RendezvousDaemonTest, StateDir_InUseOrOfAnotherJob_IsRefused) {
  Daemon daemon(WithStateDir());
  daemon.Line();
  ExpectRefusal(Daemon(WithStateDir()), dir_);
  daemon.Signal(SIGKILL);
  daemon.Wait();
  std::vector<std::string> other = WithStateDir();
  other[3] = "2";  // --np
  other[5] = "a:2";
  ExpectRefusal(Daemon(other), "other options");
  std::ofstream(dir_ + "/journal", std::ios::app) << "damage, and enough of it";
  ExpectRefusal(Daemon(WithStateDir()), "damaged");
  EXPECT_TRUE(FileExists()) << "agents still have use for it";
}

TEST_F(RendezvousDaemonTest, Metrics_AreServed_WhereItSays) {
  std::vector<std::string> arguments = Arguments();
  arguments.insert(arguments.end(), {"--metrics", "127.0.0.1:0"});
  Daemon daemon(arguments);
  daemon.Line();
  const std::string where = daemon.ErrorLine();
  const size_t start = where.find("http://127.0.0.1:");
  ASSERT_NE(start, std::string::npos) << where;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(where.substr(start + 17))));
  for (const auto& [path, expected] : {std::pair("/metrics", "\nhorovod_epoch{job="),
                                       {"/healthz", "\r\n\r\nok\n"},
                                       {"/readyz", "200 OK"},
                                       {"/else", "404 Not Found"}}) {
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    const std::string request = std::string("GET ") + path + " HTTP/1.1\r\n\r\n";
    ASSERT_EQ(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    const std::string answer = Daemon::ReadAll(fd);
    EXPECT_TRUE(absl::StrContains(answer, expected)) << answer;
  }
  daemon.Signal(SIGTERM);
  daemon.Wait();
}

TEST_F(RendezvousDaemonTest, EventLog_TellsTheEnd) {
  std::vector<std::string> arguments = Arguments();
  const std::string log = file_ + ".log";
  arguments.insert(arguments.end(), {"--event-log", log});
  Daemon daemon(arguments);
  daemon.Line();
  daemon.Signal(SIGTERM);
  daemon.Wait();
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  unlink(log.c_str());
  EXPECT_TRUE(absl::StrContains(text.str(),
                                "\"kind\":\"job_finished\",\"success\":false,"
                                "\"exit_code\":143"))
      << text.str();
}

}  // namespace
}  // namespace hvd
