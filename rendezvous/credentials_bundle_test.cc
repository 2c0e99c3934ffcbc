#include "rendezvous/credentials_bundle.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/agent.pb.h"

namespace hvd {
namespace {

class CredentialsBundleTest : public testing::Test {
 protected:
  std::string Contents() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  const std::string path_ =
      testing::TempDir() + "/credentials_bundle_test_" + std::to_string(getpid());
  const PeerCredentials credentials_{"token", "ca\n", "certificate\n", "key\n"};
};

TEST_F(CredentialsBundleTest, Write_ReadsBackAsAMessage) {
  const auto bundle = CredentialsBundle::Write(path_, credentials_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  pb::Credentials message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(Contents(), &message));
  EXPECT_EQ(message.token(), "token");
  EXPECT_EQ(message.ca_certificate(), "ca\n");
  EXPECT_EQ(message.certificate(), "certificate\n");
  EXPECT_EQ(message.private_key(), "key\n");
}

TEST_F(CredentialsBundleTest, File_IsTheOwnersAlone_AndGoesWithTheObject) {
  struct stat info = {};
  {
    const auto bundle = CredentialsBundle::Write(path_, credentials_);
    ASSERT_TRUE(bundle.ok());
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_NE(stat(path_.c_str(), &info), 0);
}

TEST_F(CredentialsBundleTest, ExistingFile_IsLeftAlone) {
  std::ofstream(path_) << "mine";
  const auto bundle = CredentialsBundle::Write(path_, credentials_);
  EXPECT_EQ(bundle.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Contents(), "mine");
  unlink(path_.c_str());
}

TEST_F(CredentialsBundleTest, NoSuchDirectory_SaysWhy) {
  const auto bundle = CredentialsBundle::Write(path_ + "/no/such", credentials_);
  EXPECT_EQ(bundle.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(bundle.status().message().find("No such file"), absl::string_view::npos);
}

}  // namespace
}  // namespace hvd
