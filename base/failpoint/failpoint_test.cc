#include "base/failpoint/failpoint.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd::failpoint {
namespace {

std::string Refusal(absl::string_view text) { return std::string(Arm("daemon", text).message()); }

std::string NewFolder() {
  std::string name = absl::StrCat(testing::TempDir(), "/failpointXXXXXX");
  return mkdtemp(name.data());
}

class FailpointTest : public testing::Test {
 protected:
  ~FailpointTest() override { EXPECT_TRUE(Arm("daemon", "").ok()); }
};

using FailpointDeathTest = FailpointTest;

TEST_F(FailpointTest, NamesAreUnique) {
  std::set<absl::string_view> names;
  for (const Definition& point : kPoints)
    EXPECT_TRUE(names.insert(point.name).second) << point.name;
}

TEST_F(FailpointTest, EveryPointBelongsToAProgram) {
  size_t listed = 0;
  for (const char* program : {"daemon", "agent", "worker"}) {
    for (const char c : List(program)) listed += c == '\n';
  }
  EXPECT_EQ(listed, kCount);
}

TEST_F(FailpointTest, IsOffWithoutAPlan) {
  EXPECT_FALSE(armed.load());
  FAILPOINT("daemon.journal.synced");
  EXPECT_TRUE(FAILPOINT_STATUS("daemon.journal.written").ok());
}

TEST_F(FailpointTest, AnErrorIsOfThePlacesKind) {
  ASSERT_TRUE(Arm("daemon", "daemon.journal.written=error").ok());
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(FAILPOINT_STATUS("daemon.journal.written"),
              absl::InternalError("failpoint daemon.journal.written"));
  }
  EXPECT_TRUE(FAILPOINT_STATUS("daemon.journal.encoded").ok());
}

TEST_F(FailpointTest, ActsAtTheGivenPass) {
  ASSERT_TRUE(Arm("daemon", "daemon.journal.written=error@2").ok());
  EXPECT_TRUE(FAILPOINT_STATUS("daemon.journal.written").ok());
  EXPECT_FALSE(FAILPOINT_STATUS("daemon.journal.written").ok());
  EXPECT_TRUE(FAILPOINT_STATUS("daemon.journal.written").ok());
}

TEST_F(FailpointTest, PointsOfOtherProgramsStayOff) {
  ASSERT_TRUE(Arm("agent", "daemon.journal.written=error; daemon.*=crash").ok());
  EXPECT_FALSE(armed.load());
}

TEST_F(FailpointTest, ALaterItemCounts) {
  ASSERT_TRUE(Arm("daemon", "daemon.*=error;daemon.journal.written=off").ok());
  EXPECT_TRUE(FAILPOINT_STATUS("daemon.journal.written").ok());
  EXPECT_FALSE(FAILPOINT_STATUS("daemon.journal.encoded").ok());
}

TEST_F(FailpointTest, ActsOnceInAFolder) {
  const std::string folder = NewFolder();
  const std::string text = absl::StrCat("daemon.*=error;daemon.host.lost=pass;once=", folder);
  ASSERT_TRUE(Arm("daemon", text).ok());
  EXPECT_FALSE(FAILPOINT_STATUS("daemon.journal.written").ok());
  EXPECT_TRUE(FAILPOINT_STATUS("daemon.journal.written").ok());
  FAILPOINT("daemon.host.lost");
  // As another process would.
  ASSERT_TRUE(Arm("daemon", text).ok());
  EXPECT_TRUE(FAILPOINT_STATUS("daemon.journal.written").ok());
  EXPECT_EQ(access(absl::StrCat(folder, "/daemon.journal.written").c_str(), F_OK), 0);
  EXPECT_EQ(access(absl::StrCat(folder, "/daemon.host.lost").c_str(), F_OK), 0);
  EXPECT_NE(access(absl::StrCat(folder, "/daemon.journal.encoded").c_str(), F_OK), 0);
}

TEST_F(FailpointTest, ADelayPasses) {
  ASSERT_TRUE(Arm("daemon", "daemon.journal.synced=delay:1ms").ok());
  FAILPOINT("daemon.journal.synced");
}

TEST_F(FailpointDeathTest, ACrashIsSigkill) {
  EXPECT_EXIT(
      {
        Arm("daemon", "daemon.journal.synced=crash").IgnoreError();
        FAILPOINT("daemon.journal.synced");
      },
      testing::KilledBySignal(SIGKILL), "failpoint daemon.journal.synced: crash");
}

TEST_F(FailpointDeathTest, AMalformedVariableEndsTheProcess) {
  EXPECT_EXIT(
      {
        setenv(kVariable, "daemon.nowhere=crash", 1);
        ArmByVariable("agent");
      },
      testing::ExitedWithCode(2),
      "horovod: HOROVOD_FAILPOINTS: 'daemon.nowhere=crash': there is no such point");
}

TEST_F(FailpointTest, SaysWhatIsMalformed) {
  EXPECT_EQ(Refusal("daemon.journal.synced"),
            "HOROVOD_FAILPOINTS: 'daemon.journal.synced': an item is POINT=ACTION");
  EXPECT_EQ(Refusal("daemon.journal.synced=error"),
            "HOROVOD_FAILPOINTS: 'daemon.journal.synced=error': nothing can fail there");
  EXPECT_EQ(Refusal("nobody.*=crash"),
            "HOROVOD_FAILPOINTS: 'nobody.*=crash': there is no such point");
  for (const char* text : {"daemon.journal.synced=crash@0", "daemon.journal.synced=crash@x"}) {
    EXPECT_EQ(Refusal(text), absl::StrCat("HOROVOD_FAILPOINTS: '", text,
                                          "': behind @ there must be a number from 1"));
  }
  for (const char* text : {"daemon.journal.synced=delay:3", "daemon.journal.synced=delay:-1s",
                           "daemon.journal.synced=delay:inf"}) {
    EXPECT_EQ(Refusal(text), absl::StrCat("HOROVOD_FAILPOINTS: '", text,
                                          "': a delay is a duration such as 300ms"));
  }
  EXPECT_EQ(Refusal("daemon.journal.synced=stop"),
            "HOROVOD_FAILPOINTS: 'daemon.journal.synced=stop': the actions are crash, "
            "delay:DURATION, error, pass and off");
}

}  // namespace
}  // namespace hvd::failpoint
