// What horovod-rendezvousd keeps in --state-dir for the next one.
#include <csignal>

#include "absl/synchronization/notification.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "tests/integration/rendezvous_daemon_fixture.h"

namespace hvd {
namespace {

using RendezvousDaemonStateTest = RendezvousDaemonTest;

TEST_F(RendezvousDaemonStateTest, KilledAndStartedAgain_SameJobSameAddressSameCredentials) {
  uint64_t worker = 0;
  std::string address;
  rendezvous::security::PeerCredentials credentials;
  {
    Daemon daemon(WithStateDir());
    address = daemon.Line();
    credentials = Credentials();
    absl::Notification started;
    absl::Notification closed;
    const auto link =
        rendezvous::client::AgentLink::Open(address, credentials, Hello(),
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
    const auto status = rendezvous::client::NewGrpcRendezvousClient(address, credentials)
                            ->GetStatus(absl::InfiniteDuration());
    ASSERT_TRUE(status.ok()) << status.status();
    ASSERT_EQ(status->hosts_size(), 1);
    ASSERT_EQ(status->hosts(0).workers_size(), 1);
    EXPECT_EQ(status->hosts(0).workers(0).worker_id(), worker);
    absl::Notification opened;
    absl::Notification closed;
    std::unique_ptr<rendezvous::client::AgentLink> link;
    link = rendezvous::client::AgentLink::Open(address, credentials, Hello({worker}),
                                               {[&](const pb::AgentCommand& command) {
                                                  EXPECT_FALSE(command.has_start())
                                                      << "it is running";
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

TEST_F(RendezvousDaemonStateTest, Sigterm_WithStateDir_LeavesTheJobToTheNextDaemon) {
  std::string address;
  {
    Daemon daemon(WithStateDir());
    address = daemon.Line();
    absl::Notification started;
    absl::Notification closed;
    absl::Status why;
    const auto link = rendezvous::client::AgentLink::Open(address, Credentials(), Hello(),
                                                          {[&](const pb::AgentCommand& command) {
                                                             if (command.has_start())
                                                               started.Notify();
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
  const auto status = rendezvous::client::NewGrpcRendezvousClient(address, Credentials())
                          ->GetStatus(absl::InfiniteDuration());
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->hosts(0).workers_size(), 1);
  next.Signal(SIGINT);
  next.Signal(SIGINT);
  EXPECT_EQ(next.Wait().exit_code, 130);
  EXPECT_FALSE(FileExists());
}

TEST_F(RendezvousDaemonStateTest, StateDir_InUseOrOfAnotherJob_IsRefused) {
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

// A new journal would mean a new job, whose daemon knows none of the workers that train.
TEST_F(RendezvousDaemonStateTest, JournalGone_IsRefused) {
  {
    Daemon daemon(WithStateDir());
    daemon.Line();
    daemon.Signal(SIGKILL);
    daemon.Wait();
  }
  ASSERT_EQ(truncate((dir_ + "/journal").c_str(), 0), 0);
  ExpectRefusal(Daemon(WithStateDir()), dir_ + "/journal is missing or empty");
  ASSERT_EQ(unlink((dir_ + "/journal").c_str()), 0);
  ExpectRefusal(Daemon(WithStateDir()), "start the job anew with another folder");
  EXPECT_TRUE(FileExists()) << "agents still have use for it";
}

}  // namespace
}  // namespace hvd
