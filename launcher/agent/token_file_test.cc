#include "launcher/agent/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace hvd {
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
  ExpectRefused("No such file");
  for (const char* text : {"", "hello world", "token: \"t\"", "token: 7", "\xff\xfe"}) {
    Write(text);
    ExpectRefused("does not hold what horovod-rendezvousd writes");
  }
  Write(std::string(kComplete) + std::string(2 << 20, ' '));
  ExpectRefused("does not hold what horovod-rendezvousd writes");
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
}  // namespace hvd
