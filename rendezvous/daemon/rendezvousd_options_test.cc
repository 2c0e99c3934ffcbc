#include "rendezvous/daemon/rendezvousd_options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/version.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::daemon {
namespace {

RendezvousdCommand Parse(const std::vector<const char*>& arguments,
                         const Environment& environment = {}) {
  return ParseRendezvousdCommand({arguments.begin(), arguments.end()}, environment);
}

// One line that contains `expected`, and exit code 2.
void ExpectRefusal(const RendezvousdCommand& command, const std::string& expected) {
  EXPECT_FALSE(command.options.has_value());
  EXPECT_EQ(command.exit_code, 2);
  EXPECT_EQ(std::count(command.text.begin(), command.text.end(), '\n'), 1) << command.text;
  EXPECT_NE(command.text.find(expected), std::string::npos) << command.text;
}

TEST(RendezvousdOptionsTest, StaticJob) {
  const auto command = Parse({"--listen", "10.0.0.1:0", "--listen=[::1]:7", "--np", "3", "--hosts",
                              "h1:2,h2:1", "--token-file", "f"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_EQ(command.options->listen, (std::vector<std::string>{"10.0.0.1:0", "[::1]:7"}));
  const policy::JobSpec& job = command.options->job;
  EXPECT_EQ(job.min_workers, 3);
  EXPECT_EQ(job.max_workers, 3);
  EXPECT_FALSE(job.elastic.has_value());
  ASSERT_EQ(job.expected_hosts.size(), 2u);
  EXPECT_EQ(job.expected_hosts[1].host, "h2");
  EXPECT_EQ(job.expected_hosts[1].slots, 1);
  EXPECT_EQ(command.options->token_file, "f");
}

TEST(RendezvousdOptionsTest, WithoutHosts_AnybodyMayCome) {
  const auto command = Parse({"--listen", "10.0.0.1:0", "--np", "3", "--token-file", "f"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_TRUE(command.options->job.expected_hosts.empty());
}

TEST(RendezvousdOptionsTest, KeepHostOrder_IsForListedHostsOfAStaticJob) {
  const std::vector<const char*> job = {"--listen", "10.0.0.1:0",       "--np", "2", "--token-file",
                                        "f",        "--keep-host-order"};
  std::vector<const char*> listed = job;
  listed.insert(listed.end(), {"--hosts", "a:1,b:1"});
  EXPECT_TRUE(Parse(listed).options->job.keep_host_order);
  listed.pop_back();
  ExpectRefusal(Parse(job), "--keep-host-order needs --hosts");
  listed.insert(listed.end(), {"a:1,b:1", "--min-np", "1"});
  ExpectRefusal(Parse(listed), "--keep-host-order is for jobs of fixed size");
}

TEST(RendezvousdOptionsTest, EncryptData_ComesFromFlagOrVariable) {
  const std::vector<const char*> job = {"--listen", "10.0.0.1:0", "--np", "3", "--token-file", "f"};
  std::vector<const char*> encrypted = job;
  encrypted.push_back("--encrypt-data");
  EXPECT_FALSE(Parse(job).options->job.encrypt_data);
  EXPECT_TRUE(Parse(encrypted).options->job.encrypt_data);
  EXPECT_TRUE(Parse(job, {{"HOROVOD_ENCRYPT_DATA", "1"}}).options->job.encrypt_data);
}

TEST(RendezvousdOptionsTest, OnCorruption_ComesFromFlagOrVariable) {
  std::vector<const char*> job = {"--listen",     "10.0.0.1:0", "--np",     "3",
                                  "--token-file", "f",          "--min-np", "1"};
  const auto chosen = [&](const Environment& environment = {}) {
    return Parse(job, environment).options->job.elastic->on_corruption;
  };
  EXPECT_EQ(chosen(), settings::OnCorruption::kWarn);
  EXPECT_EQ(chosen({{"HOROVOD_ON_CORRUPTION", "end"}}), settings::OnCorruption::kEnd);
  job.insert(job.end(), {"--on-corruption", "off"});
  EXPECT_EQ(chosen({{"HOROVOD_ON_CORRUPTION", "end"}}), settings::OnCorruption::kOff);
  job.back() = "kill";
  ExpectRefusal(Parse(job), "--on-corruption kill: must be warn, evict, end or off");
}

TEST(RendezvousdOptionsTest, HelpAndVersion_SucceedOnStdout) {
  const auto help = Parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.text.find("hvd.pb.Credentials"), std::string::npos);
  const auto version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.text, std::string(kVersion) + "\n");
}

std::vector<const char*> With(std::vector<const char*> more) {
  std::vector<const char*> all = {"--listen", "1.1.1.1:0", "-np", "4", "--token-file", "f"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(RendezvousdOptionsTest, ControlCharacters_AreRefusedInOneLine) {
  ExpectRefusal(Parse(With({"--hosts", "a\tb:4"})), "--hosts: 'a\\tb' is no name");
  ExpectRefusal(Parse(With({"--hosts", "a\nb"})), "--hosts: 'a\\nb' is not a host with a number");
  ExpectRefusal(Parse(With({"a\nb"})), "'a\\nb' is no option");
}

TEST(RendezvousdOptionsTest, MissingOrUnknownOption_IsNamed) {
  ExpectRefusal(Parse({}), "--listen");
  ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", "1"}), "--token-file");
  ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", "1", "--token-file", "f", "--x"}), "--x");
  ExpectRefusal(Parse(With({"--elastic-timout", "5"})), "did you mean --elastic-timeout?");
  ExpectRefusal(Parse(With({"a", "b", "c"})), "'a' is no option");
}

TEST(RendezvousdOptionsTest, OwnerNeedsNoTokenFile_AndNoState) {
  const auto command = Parse({"--listen", "1.1.1.1:0", "--np", "1", "--owner", "5"});
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_EQ(command.options->owner, 5);
  ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", "1", "--owner", "1"}), "--owner");
  ExpectRefusal(Parse(With({"--owner", "5", "--state-dir", "d"})), "--state-dir");
}

TEST(RendezvousdOptionsTest, BadNp_IsRefused) {
  for (const char* np : {"0", "-1", "x", "", "99999999999"}) {
    ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", np, "--token-file", "f"}), "-np");
  }
}

TEST(RendezvousdOptionsTest, BadHosts_AreRefused) {
  for (const char* hosts :
       {"", "h", "h:", ":2", "h:0", "h:-1", "h:x", "h:2,", "h:1,h:2", "h:70000"}) {
    ExpectRefusal(Parse({"--listen", "1.1.1.1:0", "--np", "1", "--token-file", "f",
                         (std::string("--hosts=") + hosts).c_str()}),
                  "--hosts");
  }
}

TEST(RendezvousdOptionsTest, MoreWorkersThanSlots_IsRefused) {
  ExpectRefusal(
      Parse({"--listen", "1.1.1.1:0", "--np", "4", "--token-file", "f", "--hosts", "a:1,b:2"}),
      "3 slots");
}

TEST(RendezvousdOptionsTest, ElasticJob) {
  const auto command = Parse(With({"--min-np",
                                   "2",
                                   "--max-np",
                                   "6",
                                   "--spares",
                                   "1",
                                   "--elastic-timeout",
                                   "60",
                                   "--reset-limit",
                                   "7",
                                   "--max-failures",
                                   "5/2h",
                                   "--grace",
                                   "1.5",
                                   "--join-delay",
                                   "0.5",
                                   "--blacklist-cooldown-range",
                                   "1",
                                   "9",
                                   "--start-timeout",
                                   "20"}));
  ASSERT_TRUE(command.options.has_value()) << command.text;
  const policy::JobSpec& job = command.options->job;
  EXPECT_EQ(job.min_workers, 2);
  EXPECT_EQ(job.max_workers, 6);
  EXPECT_EQ(job.start_workers, 4);
  ASSERT_TRUE(job.elastic.has_value());
  EXPECT_EQ(job.elastic->spares, 1);
  EXPECT_EQ(job.elastic->elastic_timeout, absl::Seconds(60));
  EXPECT_EQ(job.elastic->reset_limit, 7);
  EXPECT_EQ(job.elastic->budget.failures, 5);
  EXPECT_EQ(job.elastic->budget.window, absl::Hours(2));
  EXPECT_EQ(job.elastic->drain_grace, absl::Milliseconds(1500));
  EXPECT_EQ(job.elastic->join_delay, absl::Milliseconds(500));
  EXPECT_EQ(job.elastic->cooldown->longest, absl::Seconds(9));
  EXPECT_EQ(job.start_timeout, absl::Seconds(20));
}

TEST(RendezvousdOptionsTest, StartTimeoutOfAStaticJob) {
  EXPECT_EQ(Parse(With({})).options->job.start_timeout, absl::Minutes(10));
  EXPECT_EQ(Parse(With({"--start-timeout", "5"})).options->job.start_timeout, absl::Seconds(5));
  ExpectRefusal(Parse(With({"--start-timeout", "0"})), "--start-timeout");
}

TEST(RendezvousdOptionsTest, MinOrMaxAlone_MakesAJobElastic) {
  const auto min = Parse(With({"--min-np", "2"}));
  ASSERT_TRUE(min.options.has_value()) << min.text;
  EXPECT_TRUE(min.options->job.elastic.has_value());
  EXPECT_GT(min.options->job.max_workers, 1000);
  const auto max = Parse(With({"--max-np", "5"}));
  ASSERT_TRUE(max.options.has_value()) << max.text;
  EXPECT_TRUE(max.options->job.elastic.has_value());
  EXPECT_EQ(max.options->job.min_workers, 4);
}

TEST(RendezvousdOptionsTest, StateDirAndItsTimeout) {
  const auto command = Parse(With({"--state-dir", "d", "--reattach-timeout", "9", "--metrics",
                                   "127.0.0.1:0", "--event-log", "e"}));
  ASSERT_TRUE(command.options.has_value()) << command.text;
  EXPECT_EQ(command.options->state_dir, "d");
  EXPECT_EQ(command.options->job.reattach_timeout, absl::Seconds(9));
  EXPECT_EQ(command.options->metrics, "127.0.0.1:0");
  EXPECT_EQ(command.options->event_log, "e");
  ExpectRefusal(Parse(With({"--reattach-timeout", "9"})), "--state-dir");
}

TEST(RendezvousdOptionsTest, SizesThatContradictEachOther_AreRefused) {
  ExpectRefusal(Parse(With({"--min-np", "5"})), "--min-np (5) must not be more than -np (4)");
  ExpectRefusal(Parse(With({"--max-np", "3"})), "--max-np (3) must not be less than -np (4)");
  ExpectRefusal(Parse(With({"--min-np", "0"})), "--min-np");
  ExpectRefusal(Parse(With({"--max-np", "0"})), "--max-np");
  ExpectRefusal(Parse(With({"--min-np", "2", "--spares", "1"})), "--max-np");
  ExpectRefusal(Parse(With({"--max-np", "9", "--spares", "-1"})), "--spares");
}

TEST(RendezvousdOptionsTest, ElasticOptionsOfAStaticJob_AreRefused) {
  ExpectRefusal(Parse(With({"--grace", "3"})), "--grace");
  ExpectRefusal(Parse(With({"--reset-limit", "3"})), "--reset-limit");
  ExpectRefusal(Parse(With({"--max-failures", "3/1m"})), "--max-failures");
}

TEST(RendezvousdOptionsTest, BadValues_AreRefusedByName) {
  for (const char* budget : {"", "5", "5/", "/1m", "-1/1m", "5/0s", "5/x", "x/1m"}) {
    ExpectRefusal(Parse(With({"--min-np", "1", "--max-failures", budget})), "--max-failures");
  }
  for (const char* seconds : {"-1", "x", "nan", "inf", "1e9"}) {
    ExpectRefusal(Parse(With({"--min-np", "1", "--elastic-timeout", seconds})),
                  "--elastic-timeout");
  }
  ExpectRefusal(Parse(With({"--min-np", "1", "--reset-limit", "-1"})), "--reset-limit");
  ExpectRefusal(Parse(With({"--state-dir", ""})), "--state-dir");
  ExpectRefusal(Parse(With({"--event-log="})), "--event-log");
}

std::vector<const char*> InEtcd(std::vector<const char*> more,
                                const char* listen = "10.0.0.1:7000") {
  std::vector<const char*> all = {"--listen",     listen, "--np",   "3",
                                  "--token-file", "f",    "--etcd", "e1:2379,[fd00::2]:2379",
                                  "--job",        "train"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(RendezvousdOptionsTest, Etcd) {
  const auto command = Parse(InEtcd({"--standby", "--etcd-ca", "ca", "--etcd-user", "u",
                                     "--etcd-password-file", "p", "--reattach-timeout", "9"}));
  ASSERT_TRUE(command.options.has_value()) << command.text;
  const EtcdOptions& etcd = command.options->etcd;
  EXPECT_EQ(etcd.endpoints, (std::vector<std::string>{"e1:2379", "[fd00::2]:2379"}));
  EXPECT_EQ(etcd.job, "train");
  EXPECT_TRUE(etcd.stands_by);
  EXPECT_EQ(etcd.ca, "ca");
  EXPECT_EQ(etcd.user, "u");
  EXPECT_EQ(etcd.password, "p");
}

TEST(RendezvousdOptionsTest, Etcd_Mistakes_AreRefusedInOneLine) {
  ExpectRefusal(Parse(InEtcd({"--state-dir", "d"})), "--etcd can't be given with --state-dir");
  ExpectRefusal(Parse(InEtcd({"--owner", "5"})), "--owner can't be given with");
  ExpectRefusal(Parse(InEtcd({}, "10.0.0.1:0")), "--listen: 10.0.0.1:0 has port 0; with --etcd");
  ExpectRefusal(Parse(InEtcd({"--job", "a/b"})), "--job: 'a/b' is no name of a job");
  ExpectRefusal(Parse(InEtcd({"--etcd", "e1"})), "--etcd: 'e1' is not a host and a port");
  ExpectRefusal(Parse(InEtcd({"--etcd", "http://e1:2379"})), "is not a host and a port");
  ExpectRefusal(Parse(InEtcd({"--etcd-cert", "c"})), "--etcd-cert needs --etcd-key");
  ExpectRefusal(Parse(InEtcd({"--etcd-cert", "c", "--etcd-key", "k"})),
                "--etcd-cert needs --etcd-ca");
  ExpectRefusal(Parse(InEtcd({"--etcd-user", "u"})), "--etcd-user needs --etcd-password-file");
  ExpectRefusal(Parse(With({"--etcd", "e1:2379"})), "--job is missing");
  ExpectRefusal(Parse(With({"--job", "train"})), "--job needs --etcd");
  ExpectRefusal(Parse(With({"--standby"})), "--standby needs --etcd");
  ExpectRefusal(Parse(With({"--etcd-ca", "ca"})), "--etcd-ca needs --etcd");
}

}  // namespace
}  // namespace hvd::rendezvous::daemon
