#include "worker_runtime/api/tuning_log.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::api {
namespace {

using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TuningLogTest, Add_WritesALineBelowTheHeader_AndLaterWorldsAppend) {
  const std::string path = ::testing::TempDir() + "autotune.csv";
  const negotiation::tuning::TuningSample sample{{1 << 20, absl::Milliseconds(1)}, 5, false};
  const std::string line = negotiation::tuning::TuningLogLine(sample, true) + "\n";
  for (const bool append : {false, true}) {
    auto log = TuningLog::Open(path, append, nullptr);
    ASSERT_TRUE(log.ok()) << log.status();
    (*log)->Add(sample, true);
  }
  EXPECT_EQ(Read(path), absl::StrCat(negotiation::tuning::kTuningLogHeader, "\n", line, line));
  ASSERT_TRUE(TuningLog::Open(path, false, nullptr).ok());
  EXPECT_EQ(Read(path), absl::StrCat(negotiation::tuning::kTuningLogHeader, "\n"));
}

TEST(TuningLogTest, Open_InNoDirectory_FailsNamingVariableAndFile) {
  const auto log = TuningLog::Open("/nowhere/at/all.csv", false, nullptr);
  ASSERT_EQ(log.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(log.status().message()),
              HasSubstr("HOROVOD_AUTOTUNE_LOG='/nowhere/at/all.csv'"));
}

TEST(TuningLogTest, Add_OnAFullDisk_WarnsOnce) {
  std::vector<std::string> warnings;
  const auto log = TuningLog::Open(
      "/dev/full", false, [&warnings](const std::string& text) { warnings.push_back(text); });
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Add({{1 << 20, absl::Milliseconds(1)}, 5, false}, true);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("HOROVOD_AUTOTUNE_LOG='/dev/full': No space left"));
}

}  // namespace
}  // namespace hvd::worker_runtime::api
