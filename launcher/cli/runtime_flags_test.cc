#include "launcher/cli/runtime_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::cli {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::StatusOr<std::vector<Assignment>> Parse(const std::string& args) {
  options::FlagTable table("program", {});
  RuntimeFlags flags;
  flags.Declare(table);
  const auto result = table.Parse(absl::StrSplit(absl::StrCat(args, " cmd"), ' '));
  if (!result.ok()) return result.status();
  return flags.variables();
}

TEST(RuntimeFlagsTest, Timeline_BecomesVariables) {
  EXPECT_THAT(*Parse("--timeline-filename t.json"),
              UnorderedElementsAre(Pair("HOROVOD_TIMELINE", "t.json")));
  EXPECT_THAT(*Parse("--timeline-filename t.json --timeline-mark-cycles"),
              UnorderedElementsAre(Pair("HOROVOD_TIMELINE", "t.json"),
                                   Pair("HOROVOD_TIMELINE_MARK_CYCLES", "1")));
  EXPECT_THAT(*Parse("--timeline-filename t.json --no-timeline-mark-cycles"),
              UnorderedElementsAre(Pair("HOROVOD_TIMELINE", "t.json"),
                                   Pair("HOROVOD_TIMELINE_MARK_CYCLES", "0")));
}

TEST(RuntimeFlagsTest, Autotune_BecomesVariables) {
  EXPECT_THAT(
      *Parse("--autotune --autotune-log-file l.csv --autotune-warmup-samples 1 "
             "--autotune-steps-per-sample 2 --autotune-bayes-opt-max-samples 3 "
             "--autotune-gaussian-process-noise 0.5"),
      UnorderedElementsAre(Pair("HOROVOD_AUTOTUNE", "1"), Pair("HOROVOD_AUTOTUNE_LOG", "l.csv"),
                           Pair("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "1"),
                           Pair("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "2"),
                           Pair("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "3"),
                           Pair("HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.5")));
}

TEST(RuntimeFlagsTest, ValuesOfDisabledFeatures_DoNotReachTheWorkers) {
  EXPECT_THAT(*Parse("--autotune-warmup-samples 1 --no-autotune"),
              UnorderedElementsAre(Pair("HOROVOD_AUTOTUNE", "0")));
  EXPECT_THAT(*Parse("--timeline-mark-cycles"), IsEmpty());
}

TEST(RuntimeFlagsTest, BadValues_AreNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {"--autotune-steps-per-sample 0",
       "--autotune-steps-per-sample='0': must be a whole number from 1 to 1000000"},
      {"--autotune-warmup-samples -1",
       "--autotune-warmup-samples='-1': must be a whole number, 0 or larger"},
      {"--autotune-bayes-opt-max-samples many",
       "--autotune-bayes-opt-max-samples='many': must be a whole number from 1 to 1000000"},
      {"--autotune-gaussian-process-noise 1.5",
       "--autotune-gaussian-process-noise='1.5': must be a number from 0 to 1"},
      {"--autotune-gaussian-process-noise nan",
       "--autotune-gaussian-process-noise='nan': must be a number from 0 to 1"},
  };
  for (const auto& [args, message] : bad) EXPECT_EQ(Parse(args).status().message(), message);
}

}  // namespace
}  // namespace hvd::launcher::cli
