#include "base/settings/runtime_settings.h"

#include <stdlib.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::settings {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// All values, except whether they were given.
std::string TextOf(const RuntimeEnv& env) {
  return absl::StrCat(
      absl::StrJoin({env.engine.fusion_threshold_bytes, env.engine.cache_capacity,
                     env.autotune.warmup_samples, env.autotune.steps_per_sample,
                     env.autotune.max_samples, env.commit_copy_mbit},
                    " "),
      " ", env.engine.disable_group_fusion, env.shared_memory, env.encrypt_data,
      static_cast<int>(env.on_corruption), env.hierarchical_allreduce, env.hierarchical_allgather,
      env.engine.stall_check, env.omp_threads, env.torch_env, env.gpu_operations,
      env.nccl_is_only_way, env.nccl_shares_gpus, env.autotune.enabled, env.timeline_mark_cycles,
      env.log_hide_time, " ", env.autotune.noise, " ", env.log_level, " ",
      absl::FormatDuration(env.engine.cycle_time), " ", absl::FormatDuration(env.gloo_timeout), " ",
      absl::FormatDuration(env.agent_timeout), " ",
      absl::FormatDuration(env.engine.stall_warning_time), " ",
      absl::FormatDuration(env.engine.stall_shutdown_time));
}

std::string Code(absl::string_view text) {
  return text.empty() ? "-" : absl::StrCat("`", absl::StrReplaceAll(text, {{",", "`, `"}}), "`");
}

std::string DocsRow(const RuntimeSetting& setting) {
  const bool is_switch = setting.kind == RuntimeSetting::Kind::kSwitch;
  const std::string other =
      setting.flag_for_0.empty() ? "" : absl::StrCat(", ", Code(setting.flag_for_0));
  const std::string meaning =
      is_switch ? absl::StrCat("1: ", setting.meaning, "; 0: ", setting.meaning_of_0)
                : std::string(setting.meaning);
  return absl::StrCat("| ", Code(setting.variable), " | ", Code(setting.flag), other, " | ",
                      Code(setting.key), setting.key_says_0 ? " (true: 0)" : "", " | ",
                      setting.default_value.empty() ? "-" : setting.default_value, " | ", meaning,
                      " |\n");
}

std::string DocsTable() {
  std::string table =
      "| variable | flag | key of the file | default | meaning |\n|---|---|---|---|---|\n";
  for (const RuntimeSetting& setting : RuntimeSettings()) {
    if (!setting.is_internal) absl::StrAppend(&table, DocsRow(setting));
  }
  return table;
}

TEST(ParseRuntimeEnvTest, EmptyEnvironment_GivesDefaults) {
  const auto env = ParseRuntimeEnv({});
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->engine.fusion_threshold_bytes, size_t{128} << 20);
  EXPECT_EQ(env->engine.cycle_time, absl::ZeroDuration());
  EXPECT_EQ(env->engine.cache_capacity, 1024u);
  EXPECT_EQ(env->gloo_timeout, absl::Seconds(30));
  EXPECT_EQ(env->agent_timeout, absl::Seconds(30));
  EXPECT_EQ(env->commit_copy_mbit, 1000u);
  EXPECT_EQ(env->on_corruption, OnCorruption::kWarn);
  EXPECT_TRUE(env->engine.stall_check);
  EXPECT_TRUE(env->omp_threads);
  EXPECT_TRUE(env->torch_env);
  EXPECT_EQ(env->worker_id, 0u);
}

TEST(ParseRuntimeEnvTest, ValuesGiven_AreTakenWithTheirUnits) {
  const auto env = ParseRuntimeEnv({{"HOROVOD_CYCLE_TIME", "2.5"},
                                    {"HOROVOD_GLOO_TIMEOUT_SECONDS", "5"},
                                    {"HOROVOD_AGENT_TIMEOUT_SECONDS", "600"},
                                    {"HOROVOD_THREAD_AFFINITY", "0,3"},
                                    {"HOROVOD_STALL_CHECK_DISABLE", "1"},
                                    {"HOROVOD_OMP_THREADS", "0"},
                                    {"HOROVOD_TORCH_ENV", "0"},
                                    {"HOROVOD_ENCRYPT_DATA", "1"},
                                    {"HOROVOD_ON_CORRUPTION", "Evict"},
                                    {"HOROVOD_LOG_LEVEL", "Debug"},
                                    {"HOROVOD_WORKER_ID", "7"},
                                    {"HOROVOD_WORKER_WORD", "0f"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->engine.cycle_time, absl::Microseconds(2500));
  EXPECT_EQ(env->gloo_timeout, absl::Seconds(5));
  EXPECT_EQ(env->agent_timeout, absl::Minutes(10));
  EXPECT_THAT(env->engine.thread_affinity, ElementsAre(0, 3));
  EXPECT_FALSE(env->engine.stall_check);
  EXPECT_FALSE(env->omp_threads);
  EXPECT_FALSE(env->torch_env);
  EXPECT_TRUE(env->encrypt_data);
  EXPECT_EQ(env->on_corruption, OnCorruption::kEvict);
  EXPECT_EQ(env->log_level, "debug");
  EXPECT_EQ(env->worker_id, 7u);
  EXPECT_EQ(env->worker_word, "0f");
}

TEST(ParseRuntimeEnvTest, EmptyValue_MeansNotSet) {
  const auto env = ParseRuntimeEnv({{"HOROVOD_CACHE_CAPACITY", ""}});
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->engine.cache_capacity, 1024u);
}

TEST(ParseRuntimeEnvTest, TimeBeyondTheLimit_ErrorNamesTheLimit) {
  for (const char* value : {"1000000001", "inf"}) {
    EXPECT_EQ(ParseRuntimeEnv({{"HOROVOD_CYCLE_TIME", value}}).status().message(),
              absl::StrCat("environment variable HOROVOD_CYCLE_TIME='", value,
                           "': must be at most 1000000000"));
  }
}

class BadValueTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadValueTest, ParseRuntimeEnv_Fails_NamingVariableAndValue) {
  const auto [name, value] = GetParam();
  const auto env = ParseRuntimeEnv({{name, value}});
  ASSERT_EQ(env.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(env.status().message()), HasSubstr(name));
  EXPECT_THAT(std::string(env.status().message()), HasSubstr(value));
}

INSTANTIATE_TEST_SUITE_P(
    EnvTest, BadValueTest,
    ::testing::Values(
        std::pair("HOROVOD_FUSION_THRESHOLD", "-1"), std::pair("HOROVOD_CYCLE_TIME", "nan"),
        std::pair("HOROVOD_CACHE_CAPACITY", "many"), std::pair("HOROVOD_ON_CORRUPTION", "kill"),
        std::pair("HOROVOD_ENCRYPT_DATA", "tls"),
        std::pair("HOROVOD_STALL_CHECK_TIME_SECONDS", "-3"),
        std::pair("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "x"),
        std::pair("HOROVOD_LOG_HIDE_TIME", "2"), std::pair("HOROVOD_DISABLE_GROUP_FUSION", "on"),
        std::pair("HOROVOD_AUTOTUNE", "yes"), std::pair("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "-1"),
        std::pair("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "0"),
        std::pair("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "1.5"),
        std::pair("HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "1.1"),
        std::pair("HOROVOD_TIMELINE_MARK_CYCLES", "maybe"), std::pair("HOROVOD_CYCLE_TIME", "soon"),
        std::pair("HOROVOD_GLOO_TIMEOUT_SECONDS", "0"),
        std::pair("HOROVOD_AGENT_TIMEOUT_SECONDS", "0.5"),
        std::pair("HOROVOD_STALL_CHECK_DISABLE", "yes"), std::pair("HOROVOD_OMP_THREADS", "2"),
        std::pair("HOROVOD_THREAD_AFFINITY", "0,,1"), std::pair("HOROVOD_LOG_LEVEL", "LOUD"),
        std::pair("HOROVOD_WORKER_ID", "first")));

TEST(ReadRuntimeVariablesTest, OnlyTheTablesVariables_AreRead) {
  ASSERT_EQ(setenv("HOROVOD_CACHE_CAPACITY", "5", 1), 0);
  ASSERT_EQ(setenv("SOMETHING_ELSE", "x", 1), 0);
  const Environment environment = ReadRuntimeVariables();
  EXPECT_EQ(environment.at("HOROVOD_CACHE_CAPACITY"), "5");
  EXPECT_EQ(environment.count("SOMETHING_ELSE"), 0u);
}

TEST(ParseRuntimeEnvTest, Autotune_TakesAllItsVariables) {
  const auto env = ParseRuntimeEnv({{"HOROVOD_AUTOTUNE", "1"},
                                    {"HOROVOD_AUTOTUNE_LOG", "/a/log.csv"},
                                    {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "0"},
                                    {"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "4"},
                                    {"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "7"},
                                    {"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.25"},
                                    {"HOROVOD_CYCLE_TIME", "3"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_TRUE(env->autotune.enabled);
  EXPECT_EQ(env->autotune.log, "/a/log.csv");
  EXPECT_EQ(env->autotune.warmup_samples, 0u);
  EXPECT_EQ(env->autotune.steps_per_sample, 4u);
  EXPECT_EQ(env->autotune.max_samples, 7u);
  EXPECT_EQ(env->autotune.noise, 0.25);
  EXPECT_TRUE(env->engine.cycle_time_is_given);
  EXPECT_FALSE(env->engine.fusion_threshold_is_given);
}

TEST(ParseRuntimeEnvTest, TimelineAndGroups_AreTaken) {
  const auto env = ParseRuntimeEnv({{"HOROVOD_TIMELINE", "/a/b.json"},
                                    {"HOROVOD_TIMELINE_MARK_CYCLES", "1"},
                                    {"HOROVOD_DISABLE_GROUP_FUSION", "1"}});
  ASSERT_TRUE(env.ok()) << env.status();
  EXPECT_EQ(env->timeline, "/a/b.json");
  EXPECT_TRUE(env->timeline_mark_cycles);
  EXPECT_TRUE(env->engine.disable_group_fusion);
}

TEST(ParseRuntimeEnvTest, HierarchyAndSharedMemory_AreOnUnlessSwitchedOff) {
  const RuntimeEnv usual = *ParseRuntimeEnv({});
  EXPECT_TRUE(usual.shared_memory && usual.hierarchical_allreduce && usual.hierarchical_allgather);
  const auto off = ParseRuntimeEnv({{"HOROVOD_SHARED_MEMORY", "0"},
                                    {"HOROVOD_HIERARCHICAL_ALLREDUCE", "0"},
                                    {"HOROVOD_HIERARCHICAL_ALLGATHER", "0"},
                                    {"HOROVOD_TORUS_ALLREDUCE", "0"}});
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_FALSE(off->shared_memory || off->hierarchical_allreduce || off->hierarchical_allgather);
  const auto torus =
      ParseRuntimeEnv({{"HOROVOD_HIERARCHICAL_ALLREDUCE", "0"}, {"HOROVOD_TORUS_ALLREDUCE", "1"}});
  ASSERT_TRUE(torus.ok()) << torus.status();
  EXPECT_TRUE(torus->hierarchical_allreduce);
}

TEST(ParseRuntimeEnvTest, GpuOperations_AreForNcclUnlessAnythingElseIsNamed) {
  const auto parse = [](const char* value) {
    return ParseRuntimeEnv({{"HOROVOD_GPU_OPERATIONS", value}, {"NCCL_HOSTID", "a"}});
  };
  EXPECT_TRUE(ParseRuntimeEnv({})->gpu_operations);
  EXPECT_TRUE(parse("nccl")->gpu_operations);
  EXPECT_FALSE(parse("NCCL")->nccl_is_only_way);
  EXPECT_TRUE(parse("nccl_only")->gpu_operations);
  EXPECT_TRUE(parse("nccl_only")->nccl_is_only_way);
  EXPECT_FALSE(parse("HOST")->gpu_operations);
  EXPECT_FALSE(parse("MPI")->gpu_operations);
  EXPECT_EQ(parse("NCCL")->nccl_host_id, "a");
  EXPECT_THAT(std::string(parse("GPU").status().message()),
              HasSubstr("must be NCCL, NCCL_ONLY or HOST"));
}

TEST(ParseRuntimeEnvTest, NcclsOwnVariables_AreItsOwn) {
  const auto shares = [](const char* value) {
    return ParseRuntimeEnv({{"NCCL_MULTI_RANK_GPU_ENABLE", value}})->nccl_shares_gpus;
  };
  EXPECT_FALSE(ParseRuntimeEnv({})->nccl_shares_gpus);
  EXPECT_TRUE(shares("1"));
  EXPECT_FALSE(shares("0"));
  EXPECT_FALSE(shares("what NCCL makes of it is its affair"));
}

TEST(ParseRuntimeEnvTest, CpuOperations_AreTcpOrGloo) {
  const auto parsed = [](const std::string& value) {
    return ParseRuntimeEnv({{"HOROVOD_CPU_OPERATIONS", value}});
  };
  EXPECT_TRUE(parsed("gloo")->gloo);
  EXPECT_TRUE(parsed("GLOO")->gloo);
  EXPECT_FALSE(parsed("Tcp")->gloo);
  EXPECT_FALSE(parsed("CCL")->gloo);
  EXPECT_THAT(parsed("ccl")->notes,
              ElementsAre("HOROVOD_CPU_OPERATIONS=ccl means TCP: this version "
                          "has no MPI and no oneCCL"));
  EXPECT_TRUE(parsed("gloo")->notes.empty());
  EXPECT_THAT(std::string(parsed("nccl").status().message()), HasSubstr("must be TCP or GLOO"));
  const auto both =
      ParseRuntimeEnv({{"HOROVOD_CPU_OPERATIONS", "GLOO"}, {"HOROVOD_ENCRYPT_DATA", "1"}});
  EXPECT_THAT(std::string(both.status().message()), HasSubstr("can't be encrypted"));
}

TEST(ParseRuntimeEnvTest, MeaninglessVariables_AreNotedUnlessTheyAskForNothing) {
  for (const MeaninglessVariable& variable : MeaninglessVariables()) {
    const std::string name(variable.name);
    const auto noted = ParseRuntimeEnv({{name, "7"}});
    ASSERT_TRUE(noted.ok()) << name;
    ASSERT_EQ(noted->notes.size(), 1u) << name;
    EXPECT_THAT(noted->notes[0], HasSubstr(name + "=7 has no meaning here: "));
    EXPECT_FALSE(variable.reason.empty()) << name;
    const auto neutral = ParseRuntimeEnv({{name, std::string(variable.neutral_value)}});
    ASSERT_TRUE(neutral.ok()) << name;
    EXPECT_TRUE(neutral->notes.empty()) << name;
  }
}

TEST(ParseRuntimeEnvTest, MisspeltVariables_AreNoted) {
  EXPECT_THAT(ParseRuntimeEnv({{"HOROVOD_FUSION_TRESHOLD", "7"}})->notes,
              ElementsAre("HOROVOD_FUSION_TRESHOLD has no effect: did you mean "
                          "HOROVOD_FUSION_THRESHOLD?"));
  EXPECT_THAT(ParseRuntimeEnv({{"HOROVOD_CPU_OPERATION", "GLOO"}})->notes,
              ElementsAre("HOROVOD_CPU_OPERATION has no effect: did you mean "
                          "HOROVOD_CPU_OPERATIONS?"))
      << "HOROVOD_GPU_OPERATIONS resembles it, too";
  EXPECT_TRUE(ParseRuntimeEnv({{"HOROVOD_CYCLE_TIMES", ""}})->notes.empty());
  for (const char* other : {"HOROVOD_RANK", "HOROVOD_MY_OWN", "HOROVOD_AGENT_SOCKETS"}) {
    EXPECT_TRUE(ParseRuntimeEnv({{other, "7"}})->notes.empty()) << other;
  }
}

TEST(RuntimeSettingsTest, EverySetting_HasAMeaning_AndASwitchTwo) {
  for (const RuntimeSetting& setting : RuntimeSettings()) {
    EXPECT_FALSE(setting.meaning.empty()) << setting.variable;
    if (setting.is_internal) continue;
    EXPECT_EQ(setting.meaning_of_0.empty(), setting.kind != RuntimeSetting::Kind::kSwitch)
        << setting.variable;
  }
}

TEST(RuntimeSettingsTest, VariablesFlagsAndKeys_AreUnique) {
  std::set<std::string> names;
  for (const RuntimeSetting& setting : RuntimeSettings()) {
    for (absl::string_view list :
         {setting.variable, setting.flag, setting.flag_for_0, setting.key}) {
      for (absl::string_view name : absl::StrSplit(list, ',', absl::SkipEmpty())) {
        EXPECT_TRUE(names.emplace(name).second) << name;
      }
    }
  }
}

// The defaults in the table, and so in the docs, must be those that the program uses.
TEST(RuntimeSettingsTest, Default_IsWhatTheProgramUses) {
  for (const RuntimeSetting& setting : RuntimeSettings()) {
    if (setting.default_value.empty()) continue;
    const std::string variable(setting.variable);
    const auto given = ParseRuntimeEnv({{variable, std::string(setting.default_value)}});
    ASSERT_TRUE(given.ok()) << given.status();
    EXPECT_EQ(TextOf(*given), TextOf(RuntimeEnv())) << variable;
  }
}

// Compares the table in docs/settings.md with the expected one, and prints the latter.
TEST(RuntimeSettingsTest, DocsPage_HasThisTable) {
  std::ostringstream page;
  page << std::ifstream("docs/settings.md").rdbuf();
  EXPECT_TRUE(absl::StrContains(page.str(), DocsTable()))
      << "docs/settings.md must have this table:\n\n"
      << DocsTable();
}

}  // namespace
}  // namespace hvd::settings
