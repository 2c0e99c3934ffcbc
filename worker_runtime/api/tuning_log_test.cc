#include "worker_runtime/api/tuning_log.h"

#include <fstream>
#include <sstream>

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
    auto log = TuningLog::Open(path, append);
    ASSERT_TRUE(log.ok()) << log.status();
    (*log)->Add(sample, true);
  }
  EXPECT_EQ(Read(path), absl::StrCat(negotiation::tuning::kTuningLogHeader, "\n", line, line));
  ASSERT_TRUE(TuningLog::Open(path, false).ok());
  EXPECT_EQ(Read(path), absl::StrCat(negotiation::tuning::kTuningLogHeader, "\n"));
}

TEST(TuningLogTest, Open_InNoDirectory_FailsNamingVariableAndFile) {
  const auto log = TuningLog::Open("/nowhere/at/all.csv", false);
  ASSERT_EQ(log.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(log.status().message()),
              HasSubstr("HOROVOD_AUTOTUNE_LOG='/nowhere/at/all.csv'"));
}

}  // namespace
}  // namespace hvd::worker_runtime::api
