#include "rendezvous/security/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/fd.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/credentials.pb.h"

namespace hvd::rendezvous::security {
namespace {

const PeerCredentials& Issued() {
  static const PeerCredentials issued = *(*JobAuthority::Create("job"))->IssueForHost("host");
  return issued;
}

class TokenFileTest : public testing::Test {
 protected:
  std::string Contents() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  void PutPrivate(const std::string& text) const {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }
  void ExpectLeftAlone(const std::string& why) const {
    const absl::Status status = TokenFile::Write(path_, credentials_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
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
  PutPrivate("mine");
  ExpectLeftAlone("exists already and is left alone");
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
  PutPrivate("");
  ExpectLeftAlone("exists already and is left alone");
  unlink(path_.c_str());
}

// Every token file begins so: whoever puts that there must not be given the secrets.
TEST_F(TokenFileTest, FileThatOthersCanRead_IsLeftAlone) {
  for (const mode_t mode : {0604, 0620, 0640, 0666}) {
    PutPrivate("t");
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    ExpectLeftAlone(absl::StrFormat("it is open to other users (mode %04o)", mode));
    EXPECT_EQ(Contents(), "t");
    unlink(path_.c_str());
  }
}

TEST_F(TokenFileTest, FileOfTheSameJobThatWasOpened_IsReportedAndLeftAlone) {
  (*TokenFile::Write(path_, credentials_))->Keep();
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  ExpectLeftAlone("who may know what is in it; if it is a job's, start that job anew");
  unlink(path_.c_str());
}

TEST_F(TokenFileTest, AnotherUsersFile_IsLeftAlone) {
  PutPrivate("t");
  if (chown(path_.c_str(), 65534, 65534) == 0) {
    ExpectLeftAlone("it belongs to another user (uid 65534)");
    EXPECT_EQ(Contents(), "t");
  }
  unlink(path_.c_str());
}

TEST_F(TokenFileTest, FileWithAnotherName_IsLeftAlone) {
  PutPrivate("t");
  const std::string other = path_ + "_other";
  ASSERT_EQ(link(path_.c_str(), other.c_str()), 0);
  ExpectLeftAlone("it has another name too");
  EXPECT_EQ(Contents(), "t");
  unlink(other.c_str());
  unlink(path_.c_str());
}

TEST_F(TokenFileTest, LinkToAFile_IsLeftAlone) {
  PutPrivate("t");
  const std::string target = path_ + "_target";
  ASSERT_EQ(rename(path_.c_str(), target.c_str()), 0);
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  ExpectLeftAlone("exists already and is left alone");
  EXPECT_EQ(Contents(), "t");
  unlink(path_.c_str());
  unlink(target.c_str());
}

TEST_F(TokenFileTest, LinkOfAnotherUserInASharedFolder_IsNotRead) {
  // The file of another job of this user: it passes every check but that of the link.
  const std::string other = path_ + "_other";
  const std::unique_ptr<TokenFile> written = TokenFile::Write(other, Issued()).value();
  ASSERT_EQ(mkdir(path_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(path_.c_str(), 01777), 0);
  const std::string link = path_ + "/link";
  ASSERT_EQ(symlink(other.c_str(), link.c_str()), 0);
  EXPECT_TRUE(ReadTokenFile(link).ok());
  if (lchown(link.c_str(), 65534, 65534) == 0) {
    const absl::Status status = ReadTokenFile(link).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("it is a link of user 65534"), absl::string_view::npos);
  }
  unlink(link.c_str());
  rmdir(path_.c_str());
}

TEST_F(TokenFileTest, Fifo_IsLeftAlone) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const Fd planted(open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_EQ(write(planted.get(), "t", 1), 1);
  ExpectLeftAlone("it is not a file");
  char found[2];
  EXPECT_EQ(read(planted.get(), found, sizeof(found)), 1) << "nothing was written into it";
  unlink(path_.c_str());
}

TEST_F(TokenFileTest, NoSuchDirectory_SaysWhy) {
  const auto file = TokenFile::Write(path_ + "/no/such", credentials_);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(file.status().message().find("No such file"), absl::string_view::npos);
}

class ReadTokenFileTest : public testing::Test {
 protected:
  ~ReadTokenFileTest() override { unlink(path_.c_str()); }

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
  const std::string complete_ = *TokenText(Issued());
};

TEST_F(ReadTokenFileTest, Read_Complete_GivesCredentials) {
  Write(complete_);
  const absl::StatusOr<pb::Credentials> credentials = ReadTokenFile(path_);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->token(), Issued().token);
  EXPECT_EQ(credentials->ca_certificate(), Issued().ca_certificate);
}

TEST_F(ReadTokenFileTest, Read_OtherThings_AreRefused) {
  for (const char* text : {"hello world", "token: \"t\"", "token: 7", "\xff\xfe"}) {
    Write(text);
    ExpectRefused("does not hold what horovod-rendezvousd writes");
  }
  Write(complete_ + std::string(2 << 20, ' '));
  ExpectRefused("does not hold what horovod-rendezvousd writes");
}

// A disk, an editor or a copy on a terminal has changed it.
TEST_F(ReadTokenFileTest, Read_Damaged_SaysWhichPart) {
  PeerCredentials damaged = Issued();
  damaged.token = "a\nb";
  Write(*TokenText(damaged));
  ExpectRefused("does not hold what horovod-rendezvousd writes: the token is damaged");
  damaged = Issued();
  damaged.certificate[0] = '_';
  Write(*TokenText(damaged));
  ExpectRefused("writes: the certificate can't be read");
  damaged = Issued();
  damaged.private_key = (*JobAuthority::Create("other"))->IssueForHost("host")->private_key;
  Write(*TokenText(damaged));
  ExpectRefused("writes: the private key is not the certificate's");
}

TEST_F(ReadTokenFileTest, Read_NotThere_NotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(path_).status()));
  Write("");
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(path_).status()));
}

TEST_F(ReadTokenFileTest, Read_AnotherUsers_IsRefused) {
  Write(complete_);
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

TEST_F(ReadTokenFileTest, Await_FileAppears_IsReadAndTheWaitIsLoggedOnce) {
  int told = 0;
  WaitingClock clock(5, [this] { Write(complete_); });
  const auto credentials = AwaitTokenFile(
      path_, absl::Seconds(60), [&told] { ++told; }, clock);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(credentials->token(), Issued().token);
  EXPECT_EQ(told, 1);
}

TEST_F(ReadTokenFileTest, Await_NeverComes_SaysHowLongItWaited) {
  WaitingClock clock(100, [] {});
  const absl::Status status = AwaitTokenFile(
                                  path_, absl::Seconds(60), [] {}, clock)
                                  .status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "No such file")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "waited for it for 1m")) << status;
}

TEST_F(ReadTokenFileTest, Await_OtherContent_IsRefusedAtOnce) {
  Write("hello");
  WaitingClock clock(1, [] { ADD_FAILURE() << "it waits"; });
  EXPECT_EQ(AwaitTokenFile(
                path_, absl::Seconds(60), [] {}, clock)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ReadTokenFileTest, Read_OpenToOthers_IsRefused) {
  for (const mode_t mode : {0604, 0620, 0660, 0444}) {
    Write(complete_, mode);
    ExpectRefused("chmod 600");
    EXPECT_TRUE(
        absl::StrContains(ReadTokenFile(path_).status().message(), absl::StrFormat("%04o", mode)));
    chmod(path_.c_str(), 0600);
  }
}

TEST_F(ReadTokenFileTest, Read_ReadableByItsGroup_IsAccepted) {
  for (const mode_t mode : {0600, 0400, 0440, 0640}) {
    Write(complete_, mode);
    EXPECT_TRUE(ReadTokenFile(path_).ok()) << mode;
    chmod(path_.c_str(), 0600);
  }
}

TEST_F(ReadTokenFileTest, Read_NoRegularFile_IsRefused) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ExpectRefused("is not a file");
}

}  // namespace
}  // namespace hvd::rendezvous::security
