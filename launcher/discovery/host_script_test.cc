#include "launcher/discovery/host_script.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::discovery {
namespace {

using ::testing::HasSubstr;
using Hosts = absl::StatusOr<std::vector<rendezvous::membership::HostSlots>>;

class HostScriptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/host script.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    options_.path = directory_ + "/hosts $HOME.sh";
    options_.pause = absl::Milliseconds(1);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& text) {
    const std::string fresh = directory_ + "/new";
    std::ofstream(fresh) << text;
    chmod(fresh.c_str(), 0755);
    std::filesystem::rename(fresh, options_.path);
  }
  Hosts Next() {
    if (!script_.has_value()) script_.emplace(options_);
    return script_->Next(stop_);
  }
  std::string NextError(absl::StatusCode code = absl::StatusCode::kFailedPrecondition) {
    const Hosts hosts = Next();
    EXPECT_EQ(hosts.status().code(), code);
    const std::string message(hosts.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }

  std::string directory_;
  HostScriptOptions options_;
  Cancellation stop_;
  std::optional<HostScript> script_;
};

TEST_F(HostScriptTest, Next_RunsItAgain) {
  Write(
      "#!/bin/sh\necho x >> \"$(dirname \"$0\")/runs\"\necho a:$(wc -l < \"$(dirname "
      "\"$0\")/runs\")\n");
  for (int run = 1; run <= 3; ++run) {
    const Hosts hosts = Next();
    ASSERT_TRUE(hosts.ok()) << hosts.status();
    ASSERT_EQ(hosts->size(), 1u);
    EXPECT_EQ((*hosts)[0].host, "a");
    EXPECT_EQ((*hosts)[0].slots, run);
  }
}

TEST_F(HostScriptTest, Next_ScriptWithoutInterpreterLine_IsRunByTheShell) {
  Write("echo a\n");
  options_.slots_per_host = 2;
  const Hosts hosts = Next();
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ((*hosts)[0].slots, 2);
}

TEST_F(HostScriptTest, Next_FailingScript_SaysCodeAndWhatItSaid) {
  Write("#!/bin/sh\necho a:1\necho no cloud >&2\necho today >&2\nexit 3\n");
  EXPECT_EQ(NextError(), "the host discovery script " + options_.path +
                             " failed with exit code 3: no cloud | today");
}

TEST_F(HostScriptTest, Next_FailingScript_ItsControlCharactersAreEscaped) {
  Write("#!/bin/sh\nprintf '\\033]0;title\\007' >&2\nexit 3\n");
  EXPECT_THAT(NextError(), HasSubstr("exit code 3: \\x1b]0;title\\x07"));
}

TEST_F(HostScriptTest, Next_Rubbish_IsNamed) {
  Write("#!/bin/sh\necho a:1\necho b:x\n");
  EXPECT_THAT(NextError(absl::StatusCode::kInvalidArgument),
              HasSubstr("printed no list of hosts: line 2: host b: 'x'"));
}

TEST_F(HostScriptTest, Next_MoreThanAnyList_IsRefusedNotCut) {
  Write("#!/bin/sh\necho a:16\nhead -c 5000000 /dev/zero | tr '\\0' '\\n'\n");
  EXPECT_THAT(NextError(absl::StatusCode::kInvalidArgument), HasSubstr("printed more than 4 MiB"));
}

TEST_F(HostScriptTest, Next_MissingScript_IsAFailure) {
  EXPECT_THAT(NextError(), HasSubstr("failed with exit code 127: "));
}

TEST_F(HostScriptTest, Next_ScriptRecovers_IsReportedAgain) {
  Write("exit 1\n");
  EXPECT_FALSE(Next().ok());
  Write("echo a:1\n");
  Hosts hosts = Next();
  while (!hosts.ok()) hosts = Next();
  EXPECT_EQ(hosts->size(), 1u);
}

TEST_F(HostScriptTest, Next_ScriptThatHangs_IsKilledWithItsChildren) {
  // The child holds the pipe open: the run could end only after the child.
  Write("#!/bin/sh\nsleep 1000 &\nwait\n");
  options_.time_limit = absl::Milliseconds(50);
  EXPECT_THAT(NextError(absl::StatusCode::kDeadlineExceeded),
              HasSubstr("has not ended within 50ms and was killed"));
}

TEST_F(HostScriptTest, Next_BackgroundProcessThatHoldsTheOutput_IsToBlame) {
  Write("#!/bin/sh\necho a:1\nsleep 1000 &\n");
  // On a busy machine even the script itself may need more than the first limits.
  std::string message;
  absl::Duration limit = absl::Milliseconds(100);
  for (; limit < absl::Seconds(20) && message.find("has ended, but") == message.npos; limit *= 2) {
    options_.time_limit = limit;
    script_.emplace(options_);
    message = NextError(absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_THAT(message, HasSubstr("a process that it started still held its stdout or stderr"));
}

TEST_F(HostScriptTest, Next_Stopped_KillsTheScript) {
  const std::string fifo = directory_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Write("#!/bin/sh\nexec 3> \"$(dirname \"$0\")/fifo\"\necho running >&3\nsleep 1000\n");
  std::thread caller([this] { NextError(absl::StatusCode::kCancelled); });
  std::ifstream running(fifo);
  std::string line;
  EXPECT_TRUE(std::getline(running, line));
  stop_.Cancel(absl::CancelledError("enough"));
  caller.join();
  EXPECT_FALSE(std::getline(running, line));  // the end of the stream, once no writer is left
}

TEST_F(HostScriptTest, Next_StoppedInThePause_Returns) {
  Write("echo a:1\n");
  options_.pause = absl::InfiniteDuration();
  EXPECT_TRUE(Next().ok());
  stop_.Cancel(absl::CancelledError("enough"));
  NextError(absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace hvd::launcher::discovery
