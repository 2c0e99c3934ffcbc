#include "options/elastic_options.h"

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "options/flag_table.h"

namespace hvd::options {
namespace {

using ::testing::HasSubstr;

// `line` is what follows "-np NP".
absl::StatusOr<std::optional<ElasticOptions>> Parse(int np, const std::string& line,
                                                    const Environment& environment = {},
                                                    bool lists_hosts = false,
                                                    bool with_discovery = true) {
  FlagTable flags("prog [options]", {});
  ElasticFlags elastic(with_discovery);
  elastic.Declare(flags);
  const auto result = flags.Parse(absl::StrSplit(line, ' ', absl::SkipEmpty()));
  if (!result.ok()) return result.status();
  return elastic.Finish(np, lists_hosts, environment);
}

ElasticOptions Elastic(int np, const std::string& line, const Environment& environment = {}) {
  auto options = Parse(np, line, environment);
  EXPECT_TRUE(options.ok()) << line << ": " << options.status();
  EXPECT_TRUE(options.ok() && options->has_value()) << line;
  return options.ok() ? options->value_or(ElasticOptions{}) : ElasticOptions{};
}

std::string Error(int np, const std::string& line, const Environment& environment = {}) {
  auto options = Parse(np, line, environment);
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(options.status().message());
}

TEST(ElasticFlags, WithoutThem_JobIsStatic) {
  auto options = Parse(2, "cmd");
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options->has_value());
}

TEST(ElasticFlags, AnySwitch_MakesTheJobElasticWithDefaults) {
  const ElasticOptions fixed = Elastic(4, "--min-np 2 cmd");
  EXPECT_EQ(fixed.min_workers, 2);
  EXPECT_EQ(fixed.max_workers, 0);
  EXPECT_EQ(fixed.spec.elastic_timeout, absl::Seconds(600));
  EXPECT_FALSE(fixed.spec.reset_limit.has_value() || fixed.spec.cooldown.has_value());
  const ElasticOptions found = Elastic(4, "--host-discovery-script ./hosts.sh cmd");
  EXPECT_EQ(found.min_workers, 4);
  EXPECT_EQ(found.script, "./hosts.sh");
  const ElasticOptions growing = Elastic(4, "--max-np 8 cmd");
  EXPECT_EQ(growing.min_workers, 4);
  EXPECT_EQ(growing.max_workers, 8);
}

TEST(ElasticFlags, AllOfThem_AreRead) {
  const ElasticOptions options = Elastic(
      4,
      "--min-num-proc 1 --max-num-proc 8 --spares 2 --elastic-timeout 7 --join-delay 0.5 "
      "--host-discovery-script s --slots-per-host 3 --grace 9 --reset-limit 5 --max-failures 6/2h "
      "--max-failures-in-a-row 7 "
      "--blacklist-cooldown-range 10 100 cmd --min-np 7");
  EXPECT_EQ(options.min_workers, 1);
  EXPECT_EQ(options.max_workers, 8);
  EXPECT_EQ(options.slots_per_host, 3);
  const rendezvous::policy::ElasticSpec& spec = options.spec;
  EXPECT_EQ(spec.spares, 2);
  EXPECT_EQ(spec.elastic_timeout, absl::Seconds(7));
  EXPECT_EQ(spec.join_delay, absl::Milliseconds(500));
  EXPECT_EQ(spec.drain_grace, absl::Seconds(9));
  EXPECT_EQ(spec.reset_limit, 5);
  EXPECT_EQ(spec.budget.failures, 6);
  EXPECT_EQ(spec.budget.window, absl::Hours(2));
  EXPECT_EQ(spec.failures_without_progress, 7);
  ASSERT_TRUE(spec.cooldown.has_value());
  EXPECT_EQ(spec.cooldown->shortest, absl::Seconds(10));
  EXPECT_EQ(spec.cooldown->longest, absl::Seconds(100));
}

TEST(ElasticFlags, ElasticTimeout_ComesFromFlagThenEnvironment) {
  const Environment environment = {{"HOROVOD_ELASTIC_TIMEOUT", "12"}};
  EXPECT_EQ(Elastic(1, "--min-np 1 cmd", environment).spec.elastic_timeout, absl::Seconds(12));
  EXPECT_EQ(Elastic(1, "--min-np 1 --elastic-timeout 5 cmd", environment).spec.elastic_timeout,
            absl::Seconds(5));
  EXPECT_EQ(Error(1, "--min-np 1 cmd", {{"HOROVOD_ELASTIC_TIMEOUT", "soon"}}),
            "HOROVOD_ELASTIC_TIMEOUT: 'soon' is not a number of seconds from 1 to 604800");
}

TEST(ElasticFlags, SizesThatContradict_AreNamed) {
  EXPECT_EQ(Error(2, "--min-np 3 cmd"), "--min-np (3) must not be more than -np (2)");
  EXPECT_EQ(Error(2, "--min-np 1 --max-np 1 cmd"), "--max-np (1) must not be less than -np (2)");
  EXPECT_EQ(Error(2, "--min-np 0 cmd"), "--min-np=0 must be >= 1");
  EXPECT_THAT(Error(2, "--min-np 1 --spares 1 cmd"), HasSubstr("--spares needs --max-np"));
}

TEST(ElasticFlags, InAStaticJob_AreRefusedWithWhatTurnsElasticOn) {
  for (const char* flag :
       {"--spares 1", "--elastic-timeout 4", "--join-delay 1", "--slots-per-host 2", "--grace 3",
        "--reset-limit 3", "--max-failures 1/1m", "--blacklist-cooldown-range 1 2"}) {
    const std::string message = Error(2, std::string(flag) + " cmd");
    EXPECT_THAT(message, ::testing::StartsWith(std::string(flag).substr(0, 6)));
    EXPECT_THAT(message, HasSubstr("--min-np, --max-np or --host-discovery-script"));
  }
}

TEST(ElasticFlags, ProgramWithoutDiscovery_KnowsNoScript) {
  EXPECT_THAT(
      std::string(Parse(1, "--host-discovery-script s", {}, false, false).status().message()),
      HasSubstr("unknown option"));
  EXPECT_EQ(Parse(1, "--grace 3", {}, false, false).status().message(),
            "--grace is for elastic jobs; --min-np or --max-np makes this one elastic");
}

TEST(ElasticFlags, ScriptAndListedHosts_ExcludeEachOther) {
  EXPECT_THAT(std::string(Parse(1, "--host-discovery-script s cmd", {}, true).status().message()),
              HasSubstr("exclude each other"));
  EXPECT_THAT(Error(1, "--min-np 1 --slots-per-host 2 cmd"), HasSubstr("--host-discovery-script"));
}

TEST(ElasticFlags, CooldownRange_HasBoundsAndTwoValues) {
  const std::string start = "--min-np 1 --blacklist-cooldown-range ";
  EXPECT_EQ(Error(1, start + "0 5 cmd"), "--blacklist-cooldown-range=0 must be >= 1");
  EXPECT_EQ(Error(1, start + "1 3601 cmd"), "--blacklist-cooldown-range=3601 must be <= 3600");
  EXPECT_EQ(Error(1, start + "5 4 cmd"),
            "--blacklist-cooldown-range: MIN (5) must not be more than MAX (4)");
  EXPECT_EQ(Error(1, start + "5 cmd"), "--blacklist-cooldown-range: 'cmd' is not a whole number");
  EXPECT_EQ(Error(1, start + "5"), "--blacklist-cooldown-range needs 2 values");
  EXPECT_EQ(Error(1, start + "5 --verbose cmd"), "--blacklist-cooldown-range needs 2 values");
}

TEST(ElasticFlags, CooldownRange_BothValuesInQuotes_TakeNoWordOfTheCommand) {
  FlagTable flags("prog [options]", {});
  ElasticFlags elastic(/*with_discovery=*/true);
  elastic.Declare(flags);
  EXPECT_EQ(flags.Parse({"--blacklist-cooldown-range", "1 2", "cmd"}).status().message(),
            "--blacklist-cooldown-range: '1 2 cmd' is not two numbers, as 10 100 without quotes");
}

TEST(ElasticFlags, JoinDelay_MustBeSeconds) {
  for (const char* bad : {"-1", "x", "nan", "3601"}) {
    EXPECT_THAT(Error(1, std::string("--min-np 1 --join-delay ") + bad + " cmd"),
                HasSubstr("is not a number of seconds"));
  }
}

TEST(ParseFailureBudget, OtherFormsAreRefused) {
  for (const char* bad : {"", "5", "5/", "/10m", "x/10m", "-1/10m", "5/10", "5/-1m", "5/0s"}) {
    EXPECT_THAT(std::string(ParseFailureBudget(bad).status().message()), HasSubstr("as 5/10m"))
        << bad;
  }
  EXPECT_EQ(ParseFailureBudget("0/90s")->window, absl::Seconds(90));
}

}  // namespace
}  // namespace hvd::options
