#include "launcher/cli/options.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/unavailable_flags.h"

namespace hvd::launcher::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Action = Options::Action;

std::vector<std::string> Words(const std::string& line) {
  return absl::StrSplit(line, ' ', absl::SkipEmpty());
}

Options Parse(const std::string& line, const Environment& environment = {}) {
  auto options = ParseOptions(Words(line), environment);
  EXPECT_TRUE(options.ok()) << line << ": " << options.status();
  return options.value_or(Options{});
}

std::string Error(const std::string& line, const Environment& environment = {}) {
  auto options = ParseOptions(Words(line), environment);
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << line;
  const std::string message(options.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(ParseOptions, DefaultsOfTheShortestCommand) {
  const Options options = Parse("-np 2 python train.py --epochs 3");
  EXPECT_EQ(options.action, Action::kRunJob);
  EXPECT_EQ(options.num_proc, 2);
  EXPECT_EQ(options.start_timeout, absl::Seconds(30));
  EXPECT_THAT(options.command, ElementsAre("python", "train.py", "--epochs", "3"));
  EXPECT_THAT(options.tunables, IsEmpty());
  EXPECT_THAT(options.exports, IsEmpty());
  EXPECT_FALSE(options.verbose || options.output.timestamps);
}

TEST(ParseOptions, GeneralFlags) {
  const Options options = Parse(
      "--num-proc=4 -H a:2,b:2 -p 2222 -i /k --start-timeout 7 --network-interfaces "
      "eth0,10.0.0.0/8 "
      "--network-interface ib0 --output-filename out --verbose -prefix-timestamp --gloo "
      "--disable-cache -x A=1 -x B cmd",
      {{"B", "two"}});
  EXPECT_EQ(options.num_proc, 4);
  EXPECT_EQ(options.hosts, "a:2,b:2");
  EXPECT_EQ(options.ssh_port, 2222);
  EXPECT_EQ(options.ssh_identity_file, "/k");
  EXPECT_EQ(options.start_timeout, absl::Seconds(7));
  EXPECT_THAT(options.networks, ElementsAre("eth0", "10.0.0.0/8", "ib0"));
  EXPECT_EQ(options.output.directory, "out");
  EXPECT_TRUE(options.verbose && options.output.timestamps);
  EXPECT_THAT(options.exports, ElementsAre(Pair("A", "1"), Pair("B", "two")));
}

TEST(ParseOptions, SpellingsWithOneDash) {
  EXPECT_EQ(Parse("-np 1 -hostfile f cmd").hostfile, "f");
  EXPECT_EQ(Parse("-cb").action, Action::kCheckBuild);
  EXPECT_TRUE(Parse("-np 1 --prefix-output-with-timestamp cmd").output.timestamps);
}

TEST(ParseOptions, InformationNeedsNothingElse) {
  EXPECT_EQ(Parse("--check-build").action, Action::kCheckBuild);
  EXPECT_EQ(Parse("-v").action, Action::kShowVersion);
  EXPECT_EQ(Parse("--version").action, Action::kShowVersion);
  EXPECT_EQ(Parse("-h").action, Action::kShowHelp);
  EXPECT_EQ(Parse("-np 0 --help").action, Action::kShowHelp);
}

TEST(ParseOptions, LastOfSeveralValuesWins) {
  EXPECT_EQ(Parse("-np 2 -np 3 cmd").num_proc, 3);
  EXPECT_TRUE(Parse("-np 2 --verbose --verbose cmd").verbose);
}

TEST(ParseOptions, TuneablesBecomeVariablesOnlyIfGiven) {
  const Options options = Parse(
      "-np 1 --fusion-threshold-mb 4 --cycle-time-ms 2.5 --cache-capacity 0 --no-stall-check "
      "--stall-check-warning-time-seconds 5 --stall-check-shutdown-time-seconds 6 "
      "--autotune --timeline-filename t.json --thread-affinity 1 --gloo-timeout-seconds 9 "
      "--log-level debug --log-without-timestamp cmd");
  EXPECT_THAT(options.tunables,
              ::testing::UnorderedElementsAre(
                  Pair("HOROVOD_AUTOTUNE", "1"), Pair("HOROVOD_TIMELINE", "t.json"),
                  Pair("HOROVOD_FUSION_THRESHOLD", "4194304"), Pair("HOROVOD_CYCLE_TIME", "2.5"),
                  Pair("HOROVOD_CACHE_CAPACITY", "0"), Pair("HOROVOD_STALL_CHECK_DISABLE", "1"),
                  Pair("HOROVOD_STALL_CHECK_TIME_SECONDS", "5"),
                  Pair("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "6"),
                  Pair("HOROVOD_THREAD_AFFINITY", "1"), Pair("HOROVOD_GLOO_TIMEOUT_SECONDS", "9"),
                  Pair("HOROVOD_LOG_LEVEL", "debug"), Pair("HOROVOD_LOG_HIDE_TIME", "1")));
}

TEST(ParseOptions, FlagsThatAskForTheUsualAreAccepted) {
  EXPECT_THAT(Parse("-np 1 --gloo --disable-cache --no-timeline-mark-cycles "
                    "--no-mpi-threads-disable cmd")
                  .tunables,
              IsEmpty());
  EXPECT_THAT(Parse("-np 1 --log-with-timestamp cmd").tunables,
              ElementsAre(Pair("HOROVOD_LOG_HIDE_TIME", "0")));
}

TEST(ParseOptions, BadNumberOfProcesses) {
  EXPECT_EQ(Error("-np 0 cmd"), "-np=0 must be >= 1");
  EXPECT_EQ(Error("-np -1 cmd"), "-np=-1 must be >= 1");
  EXPECT_EQ(Error("-np x cmd"), "-np: 'x' is neither a whole number nor auto");
  EXPECT_EQ(Error("-np 2.5 cmd"), "-np: '2.5' is neither a whole number nor auto");
  EXPECT_THAT(Error("-np 99999999999999999999 cmd"), HasSubstr("neither a whole number"));
  EXPECT_THAT(Error("cmd"), HasSubstr("-np is missing"));
  EXPECT_THAT(Error(""), HasSubstr("-np is missing"));
  EXPECT_EQ(Error("stauts"), "-np is missing, to run stauts; did you mean horovodrun status?");
  EXPECT_THAT(Error("drian host2"), HasSubstr("did you mean horovodrun drain?"));
}

TEST(ParseOptions, OptionsAfterTheCommand_AreItsOwn) {
  EXPECT_EQ(Error("python train.py -np 2"),
            "-np is missing before the command: options that follow python are passed to it; "
            "write horovodrun -np 2 ... python ...");
  EXPECT_THAT(Error("train.py --num-proc=2"), HasSubstr("options that follow train.py"));
  EXPECT_THAT(Parse("-np 2 python train.py -np 4").command,
              ElementsAre("python", "train.py", "-np", "4"));
}

TEST(ParseOptions, CommandIsNeeded) {
  EXPECT_THAT(Error("-np 2"), HasSubstr("no command"));
  EXPECT_THAT(Error("-np 2 --"), HasSubstr("no command"));
}

TEST(ParseOptions, VariablesBeforeTheCommand_AreSetByEnv) {
  EXPECT_THAT(Parse("-np 1 A=1 B_2= python t.py x=y").command,
              ElementsAre("env", "A=1", "B_2=", "python", "t.py", "x=y"));
  EXPECT_THAT(Parse("-np 1 ./a=b").command, ElementsAre("./a=b"));
  EXPECT_THAT(Parse("-np 1 2a=b").command, ElementsAre("2a=b"));
}

TEST(ParseOptions, BadValuesAreNamed) {
  EXPECT_EQ(Error("-np 1 -p 0 cmd"), "--ssh-port=0 must be >= 1");
  EXPECT_EQ(Error("-np 1 -p 65536 cmd"), "--ssh-port=65536 must be <= 65535");
  EXPECT_EQ(Error("-np 1 -p ssh cmd"), "--ssh-port: 'ssh' is not a whole number");
  EXPECT_EQ(Error("-np 1 --cache-capacity -1 cmd"),
            "--cache-capacity='-1': must be a whole number, 0 or larger");
  EXPECT_EQ(Error("-np 1 --cycle-time-ms -1 cmd"),
            "--cycle-time-ms='-1': must be a number, 0 or larger");
  EXPECT_EQ(Error("-np 1 --cycle-time-ms nan cmd"),
            "--cycle-time-ms='nan': must be a number, 0 or larger");
  EXPECT_THAT(Error("-np 1 --log-level LOUD cmd"),
              HasSubstr("--log-level='LOUD': must be TRACE, DEBUG"));
  EXPECT_THAT(Error("-np 1 --network-interfaces 10.0.0.0/99 cmd"), HasSubstr("10.0.0.0/99"));
  EXPECT_THAT(Error("-np 1 -x NOT_SET cmd"), HasSubstr("-x NOT_SET: no such variable"));
  EXPECT_EQ(Error("-np 1 --start-timeout 0 cmd"), "--start-timeout=0 must be >= 1");
}

TEST(ParseOptions, StartTimeoutComesFromFlagThenEnvironment) {
  const Environment environment = {{"HOROVOD_START_TIMEOUT", "12"}};
  EXPECT_EQ(Parse("-np 1 cmd", environment).start_timeout, absl::Seconds(12));
  EXPECT_EQ(Parse("-np 1 --start-timeout 5 cmd", environment).start_timeout, absl::Seconds(5));
  EXPECT_EQ(Error("-np 1 cmd", {{"HOROVOD_START_TIMEOUT", "soon"}}),
            "HOROVOD_START_TIMEOUT: 'soon' is not a whole number");
}

TEST(ParseOptions, ContradictionsAreRefused) {
  EXPECT_THAT(Error("-np 1 -H a:1 --hostfile f cmd"), HasSubstr("exclude each other"));
  EXPECT_THAT(Error("-np 1 --log-with-timestamp --log-hide-timestamp cmd"),
              HasSubstr("exclude each other"));
}

// Words of other launchers.
TEST(ParseOptions, ForeignWords_AreExplained) {
  EXPECT_THAT(Error("kill"), HasSubstr("there is no horovodrun kill; horovodrun stop"));
  EXPECT_THAT(Error("logs"), HasSubstr("--output-filename"));
  EXPECT_THAT(Error("run python train.py"), HasSubstr("horovodrun -np 2 python train.py"));
  EXPECT_TRUE(ParseOptions(Words("-np 2 stop"), {}).ok()) << "a program of that name";
}

TEST(ParseOptions, AutomaticNumberOfProcesses) {
  const Options options = Parse("-np auto python train.py");
  EXPECT_TRUE(options.auto_num_proc);
  EXPECT_EQ(options.num_proc, 0);
  EXPECT_FALSE(Parse("-np auto -np 3 cmd").auto_num_proc) << "the last one counts";
  EXPECT_EQ(Parse("-np auto --min-np 2 cmd").elastic->min_workers, 2);
  EXPECT_EQ(Parse("-np auto --max-np 2 cmd").elastic->min_workers, 0) << "as -np, once it is known";
  const Environment lsf = {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a 2 b 1"}};
  EXPECT_EQ(Parse("-np auto cmd", lsf).num_proc, 3);
  EXPECT_FALSE(Parse("-np auto cmd", lsf).auto_num_proc);
}

TEST(ParseOptions, ModuleIsRunByPython) {
  EXPECT_THAT(Parse("-np 2 -m pkg.train --lr 1 -m x").command,
              ElementsAre("python3", "-m", "pkg.train", "--lr", "1", "-m", "x"));
  EXPECT_THAT(Parse("-np 2 --module pkg A=1").command, ElementsAre("python3", "-m", "pkg", "A=1"));
  EXPECT_THAT(Error("-np 2 -m"), HasSubstr("-m needs a module"));
}

TEST(ParseOptions, RanksOnTheTerminal) {
  EXPECT_THAT(Parse("-np 9 cmd").output.shown_ranks, IsEmpty());
  EXPECT_THAT(Parse("-np 9 --ranks-filter 0,4-7 cmd").output.shown_ranks,
              ElementsAre(Pair(0, 0), Pair(4, 7)));
  for (const char* list : {"x", "1-", "-1", "3-1", "0,,1", "1-2-3", "0,"}) {
    EXPECT_THAT(Error(absl::StrCat("-np 9 --ranks-filter=", list, " cmd")),
                HasSubstr("is not a rank or a range"))
        << list;
  }
}

// Workers have no stdin, so nothing would run.
TEST(ParseOptions, PythonWithoutAScript_IsRefused) {
  for (const char* command : {"python -", "python", "/usr/bin/python3.11 -"}) {
    EXPECT_THAT(Error(absl::StrCat("-np 2 ", command)), HasSubstr("a script from stdin"))
        << command;
  }
  for (const char* command : {"python train.py", "python -c pass", "python train.py -", "pyth -"}) {
    EXPECT_TRUE(ParseOptions(Words(absl::StrCat("-np 2 ", command)), {}).ok()) << command;
  }
}

TEST(ParseOptions, FlagsOfFeaturesThatAreLackingAreRefused) {
  for (const options::FlagSpec& flag : UnavailableFlags()) {
    for (const std::string& spelling : flag.spellings) {
      EXPECT_THAT(Error("-np 1 " + spelling + " 3 cmd"),
                  HasSubstr(spelling + " is not available: "));
    }
  }
}

class ConfigFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = ::testing::TempDir() + "/config.XXXXXX";
    const int fd = mkstemp(file_.data());
    ASSERT_GE(fd, 0);
    close(fd);
  }
  void TearDown() override { unlink(file_.c_str()); }

  // `args` with a settings file that contains `text`.
  std::string With(const std::string& text, const std::string& args) {
    std::ofstream(file_) << text;
    return absl::StrCat("-np 1 --config-file ", file_, " ", args, " cmd");
  }

  std::string file_;
};

TEST_F(ConfigFileTest, ParseOptions_FileSetsWhatNoFlagSets) {
  const std::string text =
      "params: {cycle_time_ms: 5, cache_capacity: 7}\nstall_check: {enabled: false}\n";
  EXPECT_THAT(Parse(With(text, "")).tunables,
              ::testing::UnorderedElementsAre(Pair("HOROVOD_CYCLE_TIME", "5"),
                                              Pair("HOROVOD_CACHE_CAPACITY", "7"),
                                              Pair("HOROVOD_STALL_CHECK_DISABLE", "1")));
  EXPECT_THAT(Parse(With(text, "--cycle-time-ms 2 --stall-check")).tunables,
              ::testing::UnorderedElementsAre(Pair("HOROVOD_CYCLE_TIME", "2"),
                                              Pair("HOROVOD_CACHE_CAPACITY", "7"),
                                              Pair("HOROVOD_STALL_CHECK_DISABLE", "0")));
  EXPECT_THAT(Parse("--cycle-time-ms 2 " + With("params: {cycle_time_ms: 5}\n", "")).tunables,
              ElementsAre(Pair("HOROVOD_CYCLE_TIME", "2")));
  EXPECT_THAT(Parse(With("logging: {with_timestamp: false}\n", "--log-with-timestamp")).tunables,
              ElementsAre(Pair("HOROVOD_LOG_HIDE_TIME", "0")));
}

TEST_F(ConfigFileTest, ParseOptions_FileDescribesTheJob) {
  std::ofstream(file_) << R"(
job: {np: 3, hosts: "a:2,b:2", ssh_port: 2222, network_interfaces: eth0, start_timeout: 9}
elastic: {min_np: 2, max_np: 4, max_failures: 5/10m, blacklist_cooldown_range: 10 100}
output: {filename: logs, prefix_timestamp: true, ranks_filter: 0}
)";
  const Options options = Parse(absl::StrCat("--config-file ", file_, " cmd"));
  EXPECT_EQ(options.num_proc, 3);
  EXPECT_EQ(options.hosts, "a:2,b:2");
  EXPECT_EQ(options.ssh_port, 2222);
  EXPECT_THAT(options.networks, ElementsAre("eth0"));
  EXPECT_EQ(options.start_timeout, absl::Seconds(9));
  EXPECT_EQ(options.elastic->min_workers, 2);
  EXPECT_EQ(options.elastic->max_workers, 4);
  EXPECT_EQ(options.elastic->spec.budget.failures, 5);
  EXPECT_EQ(options.elastic->spec.cooldown->longest, absl::Seconds(100));
  EXPECT_EQ(options.output.directory, "logs");
  EXPECT_TRUE(options.output.timestamps);
  EXPECT_THAT(options.output.shown_ranks, ElementsAre(Pair(0, 0)));
  const Options other = Parse(absl::StrCat("--config-file ", file_, " -np 2 --hostfile f ",
                                           "--network-interface ib0 --min-np 1 cmd"));
  EXPECT_EQ(other.num_proc, 2);
  EXPECT_EQ(other.hosts, "");
  EXPECT_EQ(other.hostfile, "f");
  EXPECT_THAT(other.networks, ElementsAre("ib0"));
  EXPECT_EQ(other.elastic->min_workers, 1);
}

TEST_F(ConfigFileTest, ParseOptions_MistakesInTheJobAreNamed) {
  const std::string start = "--config-file: " + file_;
  EXPECT_EQ(Error(With("job:\n  np: two\n", "")),
            start + ":2: job.np: -np: 'two' is neither a whole number nor auto");
  EXPECT_EQ(Error(With("job: {nproc: 2}\n", "")),
            start + ":1: unknown key job.nproc; did you mean job.np?");
  EXPECT_EQ(Error(With("np: 2\n", "")), start + ":1: unknown key np; did you mean job.np?");
  EXPECT_THAT(Error(With("job: {hosts: 'a:1', hostfile: f}\n", "")),
              HasSubstr("exclude each other"));
  EXPECT_EQ(
      Error(With("elastic: {blacklist_cooldown_range: 10}\n", "--min-np 1")),
      start + ":1: elastic.blacklist_cooldown_range: --blacklist-cooldown-range needs 2 values");
}

TEST_F(ConfigFileTest, ParseOptions_MistakesNameFileAndLine) {
  const std::string start = "--config-file: " + file_;
  EXPECT_EQ(
      Error(With("params:\n  cycle_time_ms: -1\n", "")),
      start + ":2: params.cycle_time_ms: --cycle-time-ms='-1': must be a number, 0 or larger");
  EXPECT_EQ(
      Error(With("params:\n  cycle_time_ms: -1\n", "--cycle-time-ms 1")),
      start + ":2: params.cycle_time_ms: --cycle-time-ms='-1': must be a number, 0 or larger");
  EXPECT_EQ(Error(With("parms:\n", "")), start + ":1: unknown key parms");
  EXPECT_EQ(Error(With("controller: mpi\n", "")),
            start +
                ":1: controller: --mpi is not available: this version has no MPI; leave it "
                "out, Gloo is used instead");
  EXPECT_EQ(Error(With("timeline:\n  filename: ''\n", "")),
            start + ":2: timeline.filename: --timeline-filename needs a value, not an empty one");
}

TEST(ParseOptions, RotationNeedsFiles) {
  const Options options = Parse("-np 1 --output-filename d --output-rotate-mb 3 cmd");
  EXPECT_EQ(options.output.rotate_bytes, 3 << 20);
  EXPECT_EQ(options.output.rotated_files, 5);
  EXPECT_THAT(Error("-np 1 --output-rotate-mb 3 cmd"), HasSubstr("--output-filename"));
  EXPECT_THAT(Error("-np 1 --output-filename d --output-rotate-files 3 cmd"),
              HasSubstr("--output-rotate-mb"));
}

TEST(ParseOptions, OutputFormatIsTextOrJson) {
  EXPECT_TRUE(Parse("-np 1 --output-format json cmd").output.json);
  EXPECT_FALSE(Parse("-np 1 --output-format text cmd").output.json);
  EXPECT_EQ(Error("-np 1 --output-format xml cmd"), "--output-format: 'xml' is not text or json");
}

TEST(ParseOptions, InASchedulersJobItsSlotsAreTheNumberOfProcesses) {
  const Environment lsf = {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a 2 b 1"}};
  const Options all = Parse("cmd", lsf);
  EXPECT_EQ(all.num_proc, 3);
  ASSERT_TRUE(all.allocation.has_value());
  EXPECT_EQ(all.allocation->hosts.size(), 2u);
  EXPECT_EQ(Parse("-np 2 cmd", lsf).num_proc, 2);
  EXPECT_TRUE(Parse("-np 2 cmd", lsf).allocation.has_value());
  EXPECT_EQ(Parse("--min-np 1 cmd", lsf).elastic->min_workers, 1);
  EXPECT_THAT(Error("cmd", {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a"}}),
              HasSubstr("LSB_MCPU_HOSTS"));
  EXPECT_THAT(Error("cmd", {{"LSB_JOBID", "7"},
                            {"LSB_MCPU_HOSTS",
                             "a 65536 b 65536 c 65536 "
                             "d 65536 e 65536 f 65536 "
                             "g 65536 h 65536 i 65536 "
                             "j 65536 k 65536 l 65536 "
                             "m 65536 n 65536 o 65536 "
                             "p 65536 q 1"}}),
              HasSubstr("more than a job here can have"));
}

TEST(ParseOptions, HostsThatAreGivenWinOverASchedulersJob) {
  const Environment lsf = {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "broken"}};
  for (const char* line :
       {"-np 2 -H x:2 cmd", "-np 2 --hostfile f cmd", "-np 2 --host-discovery-script s cmd"}) {
    EXPECT_FALSE(Parse(line, lsf).allocation.has_value()) << line;
  }
  EXPECT_THAT(Error("-H x:2 cmd", lsf), HasSubstr("-np is missing"));
}

TEST(ParseOptions, ElasticRestartNeedsAnElasticJob) {
  EXPECT_TRUE(Parse("--elastic-restart -np 2 --min-np 1 cmd").restarts);
  EXPECT_FALSE(Parse("-np 2 --min-np 1 cmd").restarts);
  EXPECT_THAT(Error("--elastic-restart -np 2 cmd"), HasSubstr("is for elastic jobs"));
  EXPECT_THAT(Error("--elastic-restart -np 2 --min-np 1 --no-torch-env cmd"),
              HasSubstr("no --no-torch-env"));
}

TEST(ParseOptions, UnknownFlagGetsASuggestion) {
  EXPECT_THAT(Error("-np 1 --verbos2 cmd"), HasSubstr("did you mean --verbose?"));
}

TEST(HelpText, NamesEveryGroupAndFlag) {
  const std::string help = HelpText();
  for (const char* part :
       {"Usage: horovodrun [options] <command>", "General:", "Hosts and network:", "Output:",
        "Tuneable parameters:", "Autotune:", "Timeline:", "Runtime:", "-np,--num-proc N",
        "-cb,--check-build", "-H,--hosts", "-hostfile,--hostfile",
        "-prefix-timestamp,--prefix-timestamp", "--min-np"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
}

}  // namespace
}  // namespace hvd::launcher::cli
