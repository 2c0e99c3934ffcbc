// horovod-rendezvousd while its disk, its readers or its clock do as they should not.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "rendezvous/client/control_calls.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "tests/integration/rendezvous_daemon_fixture.h"
#include "tests/integration/rendezvous_job.h"

namespace hvd {
namespace {

// What tests/support/faulty_system.cc looks at.
struct Faults {
  int64_t seconds_ahead = 0;
  int64_t sync_hangs = 0;
};

// A full FIFO without a reader.
class FullPipe {
 public:
  explicit FullPipe(const std::string& path) : path_(path) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    fd_.reset(open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const std::string filler(4096, '.');
    while (write(fd_.get(), filler.data(), filler.size()) > 0) continue;
  }
  ~FullPipe() { unlink(path_.c_str()); }

 private:
  const std::string path_;
  Fd fd_;
};

class RendezvousDaemonFaultsTest : public RendezvousDaemonTest {
 protected:
  RendezvousDaemonFaultsTest() {
    const Fd file(open(faults_file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(ftruncate(file.get(), sizeof(Faults)), 0);
    faults_ = static_cast<volatile Faults*>(
        mmap(nullptr, sizeof(Faults), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  }
  ~RendezvousDaemonFaultsTest() override {
    unlink(faults_file_.c_str());
    unlink(event_log_.c_str());
  }

  // What has to be done for a daemon to see the faults.
  std::string WithFaults() const {
    return absl::StrCat("export FAULTY_SYSTEM=", faults_file_,
                        " LD_PRELOAD=", std::filesystem::current_path().string(),
                        "/tests/support/faulty_system.so");
  }

  static std::vector<std::string> And(std::vector<std::string> arguments,
                                      const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The status code of a page of `url`.
  static int Get(const std::string& url, const std::string& page) {
    const std::string port = url.substr(url.rfind(':') + 1);
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    EXPECT_TRUE(WriteAll(fd.get(), absl::StrCat("GET ", page, " HTTP/1.1\r\n\r\n")).ok());
    const std::string answer = Daemon::ReadAll(fd);
    return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
  }

  static pb::JoinWorldRequest Join(uint64_t worker) {
    auto request = From<pb::JoinWorldRequest>(worker);
    request.set_address("127.0.0.1");
    request.set_port(4711);
    return request;
  }

  std::string EventLog() const {
    std::ostringstream text;
    text << std::ifstream(event_log_).rdbuf();
    return text.str();
  }

  const std::string faults_file_ =
      absl::StrCat(testing::TempDir(), "/rendezvousd_faults_", getpid());
  const std::string event_log_ = absl::StrCat(testing::TempDir(), "/rendezvousd_log_", getpid());
  volatile Faults* faults_ = nullptr;
};

// Neither of its readers reads: what it decides, it decides all the same.
TEST_F(RendezvousDaemonFaultsTest, EventLogAndStderrHang_TheJobGoesOn_AndSigintEndsIt) {
  const FullPipe log(event_log_);
  const FullPipe stderr_pipe(event_log_ + ".stderr");
  Daemon daemon(And(Arguments(), {"--event-log", event_log_, "--max-np", "1"}),
                absl::StrCat("exec 2<>", event_log_, ".stderr"));
  const std::string address = daemon.Line();
  PlayedAgent agent(address, Credentials(), "a", 1);
  EXPECT_EQ(agent.WaitForStarts(1).size(), 1u);
  EXPECT_TRUE(rendezvous::client::AskStatus(address, Credentials(), absl::Seconds(30)).ok());
  daemon.Signal(SIGINT);
  agent.WaitForEndOfJob();
  agent.Die();
  EXPECT_EQ(daemon.Wait().exit_code, 130);
}

TEST_F(RendezvousDaemonFaultsTest, DiskHangs_ItSaysThatItIsIll_AndASecondSignalEndsIt) {
  Daemon daemon(And(WithStateDir(), {"--metrics", "127.0.0.1:0"}), WithFaults());
  const std::string address = daemon.Line();
  std::string url = daemon.ErrorLine();
  url = url.substr(0, url.rfind('/'));
  EXPECT_EQ(Get(url, "/healthz"), 200);
  faults_->sync_hangs = 1;
  PlayedAgent agent(address, Credentials(), "a", 1);
  while (Get(url, "/healthz") != 503) continue;
  EXPECT_EQ(Get(url, "/readyz"), 503);
  EXPECT_EQ(Get(url, "/metrics"), 503);
  daemon.Signal(SIGINT);
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait().exit_code, 143);
}

TEST_F(RendezvousDaemonFaultsTest, DiskHangs_SigtermLeavesTheJobToTheNextDaemon) {
  std::string address;
  {
    Daemon daemon(WithStateDir(), WithFaults());
    address = daemon.Line();
    faults_->sync_hangs = 1;
    PlayedAgent agent(address, Credentials(), "a", 1);
    while (rendezvous::client::AskStatus(address, Credentials(), absl::Seconds(1)).ok())
      continue;  // not yet hung
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait().exit_code, 143);
  }
  faults_->sync_hangs = 0;
  Daemon next(WithStateDir(), WithFaults());
  EXPECT_EQ(next.Line(), address);
  PlayedAgent agent(address, Credentials(), "a", 1);
  EXPECT_EQ(agent.WaitForStarts(1).size(), 1u);
  next.Signal(SIGKILL);
  next.Wait();
}

// The kernel's clock is an hour behind the one that programs see: as if it were set back whenever a
// wait has begun. By the wall clock the time would be up an hour later.
TEST_F(RendezvousDaemonFaultsTest, ClockIsSetBack_ADrainIsDecidedInTime) {
  faults_->seconds_ahead = 3600;
  Daemon daemon({"--listen", "127.0.0.1:0", "-np", "2", "--min-np", "1", "--token-file", file_},
                WithFaults());
  const std::string address = daemon.Line();
  const rendezvous::security::PeerCredentials credentials = Credentials();
  PlayedAgent first(address, credentials, "a", 1);
  PlayedAgent second(address, credentials, "b", 1);
  std::vector<std::thread> workers;
  for (PlayedAgent* agent : {&first, &second}) {
    const uint64_t worker = *agent->WaitForStarts(1).begin();
    workers.emplace_back([address, credentials, worker] {
      const auto world = rendezvous::client::NewGrpcRendezvousClient(address, credentials)
                             ->JoinWorld(Join(worker), absl::Minutes(1));
      EXPECT_TRUE(world.ok()) << world.status();
    });
  }
  for (std::thread& worker : workers) worker.join();
  pb::DrainRequest drain;
  drain.set_host("b");
  drain.set_grace_ms(4000);  // after what else wakes the daemon
  const auto asked = rendezvous::client::AskToDrain(address, credentials, drain, absl::Minutes(1));
  ASSERT_TRUE(asked.ok()) << asked.status();
  second.WaitForStop(*second.WaitForStarts(1).begin());
  daemon.Signal(SIGKILL);
  daemon.Wait();
}

TEST_F(RendezvousDaemonFaultsTest, Restarted_LogsItAndSumsUpTheWholeJob) {
  const std::vector<std::string> arguments = {
      "--listen",     "127.0.0.1:0", "-np",         "1",  "--min-np",    "1",
      "--token-file", file_,         "--state-dir", dir_, "--event-log", event_log_};
  std::string address;
  rendezvous::security::PeerCredentials credentials;
  {
    Daemon daemon(arguments);
    address = daemon.Line();
    credentials = Credentials();
    PlayedAgent agent(address, credentials, "a", 1);
    ASSERT_EQ(*agent.WaitForStarts(1).begin(), 1u);
    const auto world = rendezvous::client::NewGrpcRendezvousClient(address, credentials)
                           ->JoinWorld(Join(1), absl::Minutes(1));
    ASSERT_TRUE(world.ok()) << world.status();
    daemon.Signal(SIGKILL);
    daemon.Wait();
  }
  Daemon daemon(arguments);
  EXPECT_EQ(daemon.Line(), address);
  EXPECT_EQ(daemon.ErrorLine(),
            "horovod-rendezvousd: the daemon was started again and waits for 1 host to be there "
            "again");
  PlayedAgent agent(address, credentials, "a", 1, absl::Seconds(30), {1});
  EXPECT_EQ(daemon.ErrorLine(), "horovod-rendezvousd: host a is there again");
  daemon.Signal(SIGINT);
  agent.WaitForStop(1);
  agent.SayExited(1, 0);
  EXPECT_EQ(daemon.Wait().exit_code, 130);
  const std::string errors = daemon.Errors();
  EXPECT_TRUE(absl::StrContains(errors, "horovod-rendezvousd: 1 world")) << errors;
  const std::string log = EventLog();
  EXPECT_TRUE(absl::StrContains(log, "\"kind\":\"daemon_restarted\"")) << log;
  EXPECT_TRUE(absl::StrContains(log, "\"kind\":\"host_back\"")) << log;
}

}  // namespace
}  // namespace hvd
