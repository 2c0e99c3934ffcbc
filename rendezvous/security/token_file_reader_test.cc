#include "rendezvous/security/token_file_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::security {
namespace {

constexpr char kComplete[] =
    "token: \"t\"\nca_certificate: \"a\\nb\"\ncertificate: \"c\"\nprivate_key: \"k\"\n";

class TokenFileTest : public testing::Test {
 protected:
  ~TokenFileTest() override { unlink(path_.c_str()); }

  void Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  void ExpectRefused(const std::string& why) {
    const absl::Status status = ReadTokenFile(path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), path_)) << status;
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
  }

  const std::string path_ = testing::TempDir() + "/token_file_test.txt";
};

TEST_F(TokenFileTest, Read_Complete_GivesCredentials) {
  Write(kComplete);
  const absl::StatusOr<pb::Credentials> credentials = ReadTokenFile(path_);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->token(), "t");
  EXPECT_EQ(credentials->ca_certificate(), "a\nb");
}

TEST_F(TokenFileTest, Read_OtherThings_AreRefused) {
  for (const char* text : {"hello world", "token: \"t\"", "token: 7", "\xff\xfe"}) {
    Write(text);
    ExpectRefused("does not hold what horovod-rendezvousd writes");
  }
  Write(std::string(kComplete) + std::string(2 << 20, ' '));
  ExpectRefused("does not hold what horovod-rendezvousd writes");
}

TEST_F(TokenFileTest, Read_NotThere_NotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(path_).status()));
  Write("");
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(path_).status()));
}

TEST_F(TokenFileTest, Read_AnotherUsers_IsRefused) {
  Write(kComplete);
  if (chown(path_.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "needs root";
  ExpectRefused("belongs to another user (uid 65534)");
}

// Goes on by a second with each wait; the file is there after as many.
class WaitingClock : public Clock {
 public:
  WaitingClock(int waits, std::function<void()> then) : waits_(waits), then_(std::move(then)) {}
  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex&, const absl::Condition&, absl::Time) override {
    now_ += absl::Seconds(1);
    if (--waits_ == 0) then_();
    return false;
  }

 private:
  int waits_;
  const std::function<void()> then_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(TokenFileTest, Await_ComesInTime_IsRead_AndOnceItIsSaidThatItIsWaitedFor) {
  int told = 0;
  WaitingClock clock(5, [this] { Write(kComplete); });
  const auto credentials = AwaitTokenFile(
      path_, absl::Seconds(60), [&told] { ++told; }, clock);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->token(), "t");
  EXPECT_EQ(told, 1);
}

TEST_F(TokenFileTest, Await_NeverComes_SaysHowLongItWaited) {
  WaitingClock clock(100, [] {});
  const absl::Status status = AwaitTokenFile(
                                  path_, absl::Seconds(60), [] {}, clock)
                                  .status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "No such file")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "waited for it for 1m")) << status;
}

TEST_F(TokenFileTest, Await_SomethingElse_IsRefusedAtOnce) {
  Write("hello");
  WaitingClock clock(1, [] { ADD_FAILURE() << "it waits"; });
  EXPECT_EQ(AwaitTokenFile(
                path_, absl::Seconds(60), [] {}, clock)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TokenFileTest, Read_OpenToOthers_IsRefused) {
  for (const mode_t mode : {0604, 0620, 0660, 0444}) {
    Write(kComplete, mode);
    ExpectRefused("chmod 600");
    EXPECT_TRUE(
        absl::StrContains(ReadTokenFile(path_).status().message(), absl::StrFormat("%04o", mode)));
    chmod(path_.c_str(), 0600);
  }
}

TEST_F(TokenFileTest, Read_ReadableByItsGroup_IsAccepted) {
  for (const mode_t mode : {0600, 0400, 0440, 0640}) {
    Write(kComplete, mode);
    EXPECT_TRUE(ReadTokenFile(path_).ok()) << mode;
    chmod(path_.c_str(), 0600);
  }
}

TEST_F(TokenFileTest, Read_NoRegularFile_IsRefused) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ExpectRefused("is not a file");
}

}  // namespace
}  // namespace hvd::rendezvous::security
