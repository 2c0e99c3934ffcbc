#include "rendezvous/security/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/agent.pb.h"

namespace hvd::rendezvous::security {
namespace {

class TokenFileTest : public testing::Test {
 protected:
  std::string Contents() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  const std::string path_ = testing::TempDir() + "/token_file_test_" + std::to_string(getpid());
  const PeerCredentials credentials_{"token", "ca\n", "certificate\n", "key\n"};
};

TEST_F(TokenFileTest, Write_ReadsBackAsAMessage) {
  const auto file = TokenFile::Write(path_, credentials_);
  ASSERT_TRUE(file.ok()) << file.status();
  pb::Credentials message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(Contents(), &message));
  EXPECT_EQ(message.token(), "token");
  EXPECT_EQ(message.ca_certificate(), "ca\n");
  EXPECT_EQ(message.certificate(), "certificate\n");
  EXPECT_EQ(message.private_key(), "key\n");
}

TEST_F(TokenFileTest, File_IsTheOwnersAlone_AndGoesWithTheObject) {
  struct stat info = {};
  {
    const auto file = TokenFile::Write(path_, credentials_);
    ASSERT_TRUE(file.ok());
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_NE(stat(path_.c_str(), &info), 0);
}

TEST_F(TokenFileTest, ExistingFile_IsLeftAlone) {
  std::ofstream(path_) << "mine";
  const auto file = TokenFile::Write(path_, credentials_);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Contents(), "mine");
  unlink(path_.c_str());
}

TEST_F(TokenFileTest, FileOfTheSameJob_IsTakenOver_EvenIfCutShort) {
  (*TokenFile::Write(path_, credentials_))->Keep();
  const std::string whole = Contents();
  for (const size_t size : {whole.size(), whole.size() / 2}) {
    std::ofstream(path_) << whole.substr(0, size);
    const auto file = TokenFile::Write(path_, credentials_);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(Contents(), whole);
    (*file)->Keep();
  }
  PeerCredentials others = credentials_;
  others.token = "other";
  EXPECT_EQ(TokenFile::Write(path_, others).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Contents(), whole);
  unlink(path_.c_str());
}

TEST_F(TokenFileTest, EmptyFile_IsNobodysAndLeftAlone) {
  std::ofstream(path_).flush();
  EXPECT_EQ(TokenFile::Write(path_, credentials_).status().code(),
            absl::StatusCode::kAlreadyExists);
  unlink(path_.c_str());
}

TEST_F(TokenFileTest, NoSuchDirectory_SaysWhy) {
  const auto file = TokenFile::Write(path_ + "/no/such", credentials_);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(file.status().message().find("No such file"), absl::string_view::npos);
}

}  // namespace
}  // namespace hvd::rendezvous::security
